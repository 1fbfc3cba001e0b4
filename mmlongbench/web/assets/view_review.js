// The page of something that is reviewed: its keys.
"use strict";
{
  const {keys, say} = View;
  const follow = id => { const link = document.getElementById(id); if (link) link.click(); else say("there is none"); };
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
}
