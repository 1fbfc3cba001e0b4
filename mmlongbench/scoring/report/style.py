"""How the page looks: light and dark by the reader's setting, one ramp of one hue, readable without colour."""

SERIES = 7
"""Colours for models; after these many, lines are dashed."""

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1c2733;--dim:#5f6c78;--line:#dde3e8;--bad:#b3261e;--link:#1f5a94;
--cold:#f6f8fa;--hot:#4f9bdc;--m0:#0072b2;--m1:#d55e00;--m2:#00855f;--m3:#b45c92;--m4:#a87400;--m5:#2f93cc;
--m6:#1c2733}
@media(prefers-color-scheme:dark){:root{--ground:#12171c;--ink:#e2e8ee;--dim:#97a4b0;--line:#2c363f;--bad:#ff8a80;
--link:#8cc4f5;--cold:#1a222a;--hot:#2a6296;--m0:#5fb4ea;--m1:#ff9350;--m2:#3fc79a;--m3:#e39ac6;
--m4:#e8b23f;--m5:#9fdcff;--m6:#e2e8ee}}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground);margin:2rem auto;max-width:84rem;
padding:0 1rem}
h1{font-size:1.35rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2.4rem 0 .3rem}
h3{font-size:.95rem;margin:1.4rem 0 .2rem;overflow-wrap:anywhere}
h3 span{font-weight:400;color:var(--dim)}
p{margin:.2rem 0;color:var(--dim);max-width:64rem;overflow-wrap:anywhere}
a{color:var(--link)}nav ul{columns:3 16rem;padding-left:1.1rem;margin:.6rem 0}nav li{overflow-wrap:anywhere}
nav li li{font-size:.85rem}nav ul ul{columns:1;margin:0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0;overflow-wrap:anywhere}
th,td{padding:.2rem .45rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
thead th{font-weight:600;vertical-align:bottom}thead th.t,tbody th,td.t{text-align:left}
tbody th{font-weight:400;max-width:22rem;overflow-wrap:anywhere}
.wide tbody th{min-width:6rem}tbody th b{font-weight:600}td.t{max-width:26rem;overflow-wrap:anywhere}
th small,td small{display:block;font-size:.72rem;color:var(--dim);white-space:nowrap}
th small{white-space:normal}th[rowspan]{max-width:15rem}
td.v{background:color-mix(in oklab,var(--hot) calc(var(--v)*100%),var(--cold));border:2px solid var(--ground)}
td.v small{color:inherit}td.na{color:var(--dim)}.bad{color:var(--bad)}
td.m{box-shadow:inset 3px 0 var(--bad)}td small.m{color:inherit;font-style:italic}
tr.sub th{font-weight:600;padding-top:.6rem;max-width:none}tr.last th,tr.last td{border-top:2px solid var(--dim)}
.many{display:flex;flex-wrap:wrap;gap:.6rem .8rem;align-items:flex-end}.many>*{min-width:0}
.many th,.many td{padding:.1rem .25rem;font-size:.82rem;vertical-align:middle}.many td{min-width:1.9rem}
.many td small{font-size:.68rem}
#depth~.many tbody th{max-width:4rem}#depth~.many :is(td.n,thead th:last-child){display:none}
.many tbody th{max-width:5.6rem}.many td.n{color:var(--dim);padding-left:0}
caption{contain:inline-size}.wide{overflow-x:auto}
figure{margin:0}figcaption{font-weight:600;overflow-wrap:anywhere;max-width:20rem}
svg text{fill:var(--dim);font:10px system-ui,sans-serif}svg .axis{stroke:var(--line)}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.4rem 0;color:var(--ink)}.key span{overflow-wrap:anywhere}
.key svg{vertical-align:middle;margin-right:.3rem}
.ramp{display:inline-block;width:9rem;height:.8em;vertical-align:-.05em;margin:0 .4em;
background:linear-gradient(in oklab to right,var(--cold),var(--hot));border:1px solid var(--line)}
details>summary{cursor:pointer;margin:.5rem 0;color:var(--link)}
@media print{body{max-width:none}details{break-inside:avoid}}
"""
