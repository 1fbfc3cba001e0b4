// The page of something that is reviewed: keys, and sending what is decided. What is sent has the token of the page.
"use strict";
{
  const {about, keys, say} = View;
  const find = id => document.getElementById(id);
  const form = find("decision"), decided = find("decided");
  const follow = id => { const link = find(id); if (link) link.click(); else say("there is none"); };
  keys.n = () => follow("next");
  keys.p = () => follow("previous");

  const pages = [...document.querySelectorAll(".sheet")];
  const step = by => {
    const at = pages.indexOf(document.activeElement);
    const next = pages[at < 0 ? (by > 0 ? 0 : pages.length - 1) : Math.min(pages.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.scrollIntoView({block: "nearest"});
    if (next) history.replaceState(null, "", `#${next.id}`);
  };
  keys.j = () => step(1);
  keys.k = () => step(-1);

  const buttons = [...form.querySelectorAll("[data-act]")];
  const fields = [...form.querySelectorAll("[data-field]")];

  // what differs from the source, also what was decided before: a browser gives every end of a line as \n, also of fields that nobody touched
  const lines = text => text.replace(/\r\n?/g, "\n");
  const changed = () => fields.filter(each => lines(each.value) !== lines(each.dataset.source ?? each.defaultValue));

  async function decide(act) {
    const problem = form.elements.problem;
    if (problem && !problem.value && (act === "revise" || act === "remove")) {
      problem.focus();
      return say("choose what is wrong first, then decide");
    }
    const values = act === "revise" ? Object.fromEntries(changed().map(each => [each.dataset.field, each.value])) : {};
    for (const each of buttons) each.disabled = true;
    try {
      const answer = await fetch(about.base + about.key, {
        method: "POST",
        headers: {"content-type": "application/json", "x-review-token": about.token},
        body: JSON.stringify({act, problem: problem?.value ?? "", comment: form.elements.comment.value, values, seen: about.seen}),
      });
      if (!answer.ok) throw new Error(await answer.text());
      const found = await answer.json();
      decided.replaceChildren(...(found.act ? [View.el("b", "", found.act), ` ${found.words}`] : ["not decided"]));
      decided.dataset.act = found.act;
      about.seen = found.seen;
      say(found.left ? `written; ${View.number(found.left)} left` : "written; all are decided");
      if (found.next) location.assign(found.next);
    } catch (error) {
      say(`not written: ${error.message.trim()}`);
      if (act === "revise") fields[0]?.focus();
    } finally {
      for (const each of buttons) each.disabled = false;
    }
  }

  for (const button of buttons) {
    button.addEventListener("click", () => decide(button.dataset.act));
    keys[button.dataset.shortcut] = () => button.click();
  }
  form.addEventListener("submit", event => event.preventDefault());
  if (buttons.length) keys["/"] = () => fields[0]?.focus();
}
