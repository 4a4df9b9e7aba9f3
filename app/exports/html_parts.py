"""What every HTML report is made of: one page without script or network, light and dark, good on paper."""

from __future__ import annotations

import html
from collections.abc import Sequence

CSS = """
:root{color-scheme:light dark;--bg:#EEF1F5;--card:#FFF;--text:#141A21;--soft:#465261;--line:#DCE2E9;--bad:#B3261E;
--warn:#7A5200;--noise:#BAC4D0;--mid:#FFF}
@media (prefers-color-scheme: dark){:root{--bg:#0D1014;--card:#171C23;--text:#EBEFF4;--soft:#AAB5C2;
--line:#262E39;--bad:#FF8E86;--warn:#F4BE55;--noise:#394452;--mid:#171C23}}
body{background:var(--bg);color:var(--text);font:14px/1.5 Inter,system-ui,sans-serif;margin:0;padding:24px;
font-variant-numeric:tabular-nums}
main{max-width:1200px;margin:auto}h1{font-size:24px;margin:0 0 4px}h2{font-size:16px;margin:0 0 12px}
h1,h2,p,li,td,dd,figcaption{unicode-bidi:plaintext;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;margin:16px 0}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th{color:var(--soft);font-weight:500;font-size:12px;text-align:right;white-space:nowrap;padding:6px 8px}
td{border-top:1px solid var(--line);padding:6px 8px;text-align:right;white-space:nowrap}
.left th,.left td{text-align:left;white-space:normal}
th:first-child,td:first-child{text-align:left}td:first-child{font-weight:600}
tr.wrong td{color:var(--bad)}tr.differs td{color:var(--warn)}
tr.reason td{color:var(--soft);text-align:left;white-space:normal}.warning{color:var(--warn)}
p,dd{color:var(--soft)}dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0}
dd{margin:0;color:var(--text)}dt{color:var(--soft)}ul{padding-left:20px;margin:0}
figure{margin:16px 0 0}figcaption{color:var(--soft);font-size:12px}svg{width:100%;max-width:760px}
svg text{fill:var(--text);font-size:12px}svg .value{text-anchor:end}svg .tick{text-anchor:middle;
fill:var(--soft);font-size:11px}svg .grid{stroke:var(--line)}svg .band{fill-opacity:.35;stroke:none}
svg .median{stroke-width:3}svg .whisker{stroke-width:2}svg rect{stroke:none}svg .backward{fill-opacity:.5}
svg .roof{fill:none;stroke:var(--text);stroke-width:2.2}svg .ring{fill:none;stroke:var(--text)}
details{margin:16px 0 0}summary{cursor:pointer;font-weight:600}
svg .hill{fill-opacity:.35;stroke-width:1}svg .noise{fill:var(--noise);fill-opacity:.5}
@media print{:root{--bg:#FFF;--card:#FFF;--text:#000;--soft:#333;--line:#BBB;--noise:#CCC}
body{padding:0;font-size:11px;-webkit-print-color-adjust:exact;print-color-adjust:exact}main{max-width:none}
section{border:none;padding:0;border-top:1px solid var(--line);border-radius:0}
figure,tr{break-inside:avoid}h2{break-after:avoid}.wide{overflow:visible}
th,td{white-space:normal;padding:3px 4px;font-size:9px}}
"""


def esc(text: str) -> str:
    """`text` as text whatever is in it; what a page cannot hold becomes a replacement mark."""
    return html.escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text), quote=True)


def page(title: str, body: str, style: str = "") -> bytes:
    """The whole file. `body` and `style` are markup already."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title)} · AttnScope</title><style>{CSS}{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    ).encode("utf-8", "replace")


def section(title: str, body: str) -> str:
    """A card. `body` is markup already."""
    return f"<section><h2>{esc(title)}</h2>{body}</section>"


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = (), left: bool = False
) -> str:
    """A table; a row that is shorter than the titles has its last cell across the rest."""
    head = "".join(f"<th>{esc(title)}</th>" for title in titles)
    body = []
    for index, row in enumerate(rows):
        kind = f' class="{classes[index]}"' if index < len(classes) and classes[index] else ""
        across = f' colspan="{len(titles) - len(row) + 1}"' if len(row) < len(titles) else ""
        cells = [f"<td>{esc(cell)}</td>" for cell in row[:-1]] + [f"<td{across}>{esc(row[-1])}</td>"]
        body.append(f"<tr{kind}>{''.join(cells)}</tr>")
    align = ' class="left"' if left else ""
    return (
        f'<div class="wide"><table{align}><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def figure(svg: str, caption: str) -> str:
    """A chart with its caption; nothing for an empty chart."""
    return f"<figure>{svg}<figcaption>{esc(caption)}</figcaption></figure>" if svg else ""


def bullets(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{esc(line)}</li>" for line in lines) + "</ul>"
