"""The style sheet: light, dark and print; shades always come with words or numbers. Pure."""

from __future__ import annotations

CSS = """
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#18202b;--dim:#566172;--line:#d5dae2;--head:#eef1f5;
--accent:#1d5fb8;--old:#8a5200;--good:#15683a;--goodbg:#e3f3e9;--warn:#7a4b00;--warnbg:#fdf0d5;--bad:#a81f18;
--badbg:#fce5e3;--l1:#dbe9fa;--l2:#b3d1f4;--l3:#7fb1ea;--l4:#4a8ed9;--l4ink:#0b1a2c}
@media (prefers-color-scheme:dark){:root{--bg:#0f1319;--card:#171d26;--ink:#e8edf4;--dim:#a3afc0;--line:#2f3947;
--head:#1e2631;--accent:#79b2ff;--old:#f0b35a;--good:#74d49b;--goodbg:#143123;--warn:#f3c268;--warnbg:#392a0c;
--bad:#ff9c93;--badbg:#401b18;--l1:#1a2f4a;--l2:#1f4370;--l3:#27609f;--l4:#7db4f5;--l4ink:#08131f}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1080px;margin:0 auto;padding:28px 20px 48px}
header,section,footer{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px 24px;
margin:0 0 16px}
h1{font-size:28px;line-height:1.2;margin:0}
h2{font-size:20px;line-height:1.3;margin:0 0 10px}
h3{font-size:16px;margin:20px 0 6px;overflow-wrap:anywhere}
p{margin:0 0 10px;max-width:80ch}
ul{margin:0;padding-left:18px}
.over{color:var(--dim);margin:0;font-size:14px}
.reason{font-size:18px;margin:4px 0 12px}
.lead,.dim{color:var(--dim)}
.note{border-left:4px solid var(--warn);padding:4px 12px;background:var(--warnbg);color:var(--ink)}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:14px;overflow-wrap:anywhere}
pre{background:var(--head);border:1px solid var(--line);border-radius:6px;padding:10px 12px;white-space:pre-wrap;
margin:0 0 10px}
.state{display:inline-block;font-weight:600;border-radius:6px;padding:6px 12px;margin:0 0 14px}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
.state.good{background:var(--goodbg)}.state.warn{background:var(--warnbg)}.state.bad{background:var(--badbg)}
.tiles{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:10px}
.tiles li{border:1px solid var(--line);border-radius:8px;padding:10px 14px;display:flex;flex-direction:column}
.tiles .name{color:var(--dim);font-size:14px;overflow-wrap:anywhere}
.tiles strong{font-size:18px;line-height:1.4}
.nw{white-space:nowrap}
.tiles .small{color:var(--dim);font-size:14px}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:6px 18px;margin:0}
.facts dt{color:var(--dim)}.facts dd{margin:0;overflow-wrap:anywhere}.facts ul{list-style:none;padding:0}
.scroll{overflow-x:auto;margin:0 0 12px}
.scroll:focus-visible,summary:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:15px}
caption{text-align:left;color:var(--dim);font-size:14px;padding:0 0 4px;caption-side:top}
th,td{text-align:left;vertical-align:top;padding:5px 10px;border-bottom:1px solid var(--line)}
thead th{background:var(--head);font-weight:600;vertical-align:bottom}
tbody th{font-weight:600;white-space:nowrap}
.stack tbody th{white-space:normal;overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap}
thead .n{white-space:normal}
.rules td ul{margin:4px 0 0;color:var(--dim)}
.rules td:nth-child(2){white-space:nowrap;width:110px}
.rules th[scope=row]{width:30%}
.rules td:last-child{overflow-wrap:anywhere}
.mark{font-weight:600}
.bar{display:inline-block;width:56px;height:9px;border:1px solid var(--line);background:var(--head);vertical-align:1px}
.bar span{display:block;height:100%;background:var(--accent)}
.hit{font-weight:600;color:var(--accent)}
.calendar{display:flex;flex-wrap:wrap;gap:16px 28px;align-items:flex-start}
.calendar table{width:auto}
.calendar caption{font-weight:600;color:var(--ink)}
.calendar th{background:none;color:var(--dim);font-weight:400;font-size:14px;border:0;padding:2px 6px;text-align:center}
.calendar td{border:2px solid var(--card);border-radius:6px;padding:2px 4px;text-align:center;min-width:52px;
line-height:1.25}
.calendar td small{display:block;font-size:12px}
.calendar td b{font-weight:600;font-size:14px;white-space:nowrap}
.calendar td.void,.calendar thead td{background:none;border-color:transparent}
.calendar td.out{color:var(--dim)}
.calendar .tight td{min-width:0;padding:0 3px;font-family:ui-monospace,Menlo,Consolas,monospace}
.calendar .tight th{padding:0 3px;font-size:12px}
.calendar .tight tbody th{white-space:nowrap;text-align:left}
.l0{background:var(--head)}.l1{background:var(--l1)}.l2{background:var(--l2)}.l3{background:var(--l3)}
.l4{background:var(--l4);color:var(--l4ink)}
.l4 small{color:inherit}
.values{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:6px}
.values li{border-radius:6px;padding:4px 10px}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;color:var(--dim);font-size:14px;margin:12px 0 0;max-width:none}
.pair{display:inline-flex;align-items:center;gap:6px}
.key{display:inline-block;width:26px;height:22px;padding:0 3px;text-align:center;border-radius:4px;
border:1px solid var(--line)}
.fill{display:block;height:4px;margin-top:2px;border-radius:2px;background:var(--card);overflow:hidden}
.key .fill{margin-top:14px}
.fill i{display:block;height:100%;background:var(--ink)}
.l4 .fill{background:#ffffff73}.l4 .fill i{background:var(--l4ink)}
.same{text-align:center}
.heat{display:block;margin:-5px -10px;padding:5px 10px}
figure{margin:0 0 24px}
figcaption h3{margin-top:8px}
.chart{width:100%;min-width:540px;height:auto;max-height:320px;display:block}
.chart text{fill:var(--dim);font-size:13px}
.grid{stroke:var(--line);stroke-width:1}
.line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.line.before{stroke:var(--old);stroke-dasharray:6 4}
.line.after{stroke:var(--accent)}
.dot.before{fill:var(--card);stroke:var(--old);stroke-width:1.4}
.dot.after{fill:var(--accent)}
.swatch{display:inline-block;width:28px;height:0;border-top:3px solid var(--accent)}
.swatch.before{border-top:3px dashed var(--old)}
.spreads{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:8px 32px}
.boxes{width:100%;max-width:420px;height:44px;display:block;margin:0 0 6px}
.whisker,.median{stroke-width:2}.box{fill:var(--card);stroke-width:2}
.whisker.before,.median.before,.box.before{stroke:var(--old)}
.whisker.after,.median.after,.box.after{stroke:var(--accent)}
.box.before{stroke-dasharray:4 3}.box.after{fill:var(--l2)}
.sample th.pairhead{text-align:center;border-left:1px solid var(--line)}
.sample td.old,.sample th.old{border-left:1px solid var(--line)}
.sample td.old.moved{color:var(--old)}
.sample td.new.moved{color:var(--accent);font-weight:600}
.sample tbody th{white-space:nowrap}
details{margin:0 0 12px}
summary{cursor:pointer;color:var(--accent);padding:4px 0}
.sign-here{border:1px solid var(--line);border-radius:8px;padding:14px 16px;margin-top:18px}
.lines{display:grid;grid-template-columns:2fr 1fr 2fr;gap:24px;margin:34px 0 8px}
.rule{border-top:1px solid var(--ink);font-size:14px;color:var(--dim);padding-top:2px}
@media (max-width:640px){main{padding:10px 8px 32px}header,section,footer{padding:14px 14px;border-radius:8px}
h1{font-size:23px;overflow-wrap:anywhere}.facts{grid-template-columns:1fr;gap:0}.facts dd{margin:0 0 8px}
.tiles{grid-template-columns:1fr 1fr}.tiles li{padding:8px 10px}.tiles strong{font-size:17px}
.chart text{font-size:17px}.month{width:100%!important}
.calendar td{min-width:0;padding:1px 2px}.calendar td b{font-size:12px}
.stack,.stack caption,.stack tbody,.stack tr,.stack tbody th,.stack td{display:block;border:0;padding:1px 0;
width:auto!important}
.stack thead{position:absolute;left:-9999px}.stack tr{border-bottom:1px solid var(--line);padding:8px 0}
.lines{grid-template-columns:1fr;gap:30px}}
@media print{:root{color-scheme:light;--bg:#fff;--card:#fff;--ink:#000;--dim:#444;--line:#bbb;--head:#f0f0f0;
--accent:#1d5fb8;--old:#8a5200;--good:#15683a;--goodbg:#fff;--warn:#7a4b00;--warnbg:#fff;--bad:#a81f18;--badbg:#fff;
--l1:#dbe9fa;--l2:#b3d1f4;--l3:#7fb1ea;--l4:#4a8ed9;--l4ink:#0b1a2c}
body{font-size:11pt}main{max-width:none;padding:0}header,section,footer{border:0;padding:8px 0;border-radius:0}
.scroll{overflow:visible}h2,h3{break-after:avoid}figure,tr,.month,.spread,.sign-here{break-inside:avoid}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
