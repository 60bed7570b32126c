"""Draw the top of a report page as one SVG file, for the README.

    python docs/picture.py laconic-demo/report.html docs/report.svg

Needs playwright and chromium. Boxes, lines of text and the page's own drawings are copied with
the places and styles that the browser gave them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1100, 1240

DRAW = """
([width, height]) => {
  const out = [], escape = t => t.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  const number = v => Math.round(v * 10) / 10;
  const seen = s => s && s !== 'none' && !/rgba\\(.*, 0\\)$/.test(s);
  const box = (r, s) => {
    const border = parseFloat(s.borderTopWidth) && parseFloat(s.borderLeftWidth);
    if (!seen(s.backgroundColor) && !border) return;
    out.push(`<rect x="${number(r.x)}" y="${number(r.y)}" width="${number(r.width)}" height="${
      number(r.height)}" rx="${parseFloat(s.borderTopLeftRadius) || 0}" fill="${
      seen(s.backgroundColor) ? s.backgroundColor : 'none'}"${
      border ? ` stroke="${s.borderTopColor}"` : ''}/>`);
  };
  const words = node => {
    const range = document.createRange(), s = getComputedStyle(node.parentElement);
    let line = '', place = null;
    const flush = () => {
      if (place && line.trim() && place.y < height) out.push(
        `<text x="${number(place.x)}" y="${number(place.y + place.height * 0.77)}" fill="${
        s.color}" font-size="${parseFloat(s.fontSize)}" font-weight="${s.fontWeight}">${
        escape(line.trim())}</text>`);
    };
    [...node.data].forEach((letter, i) => {
      range.setStart(node, i); range.setEnd(node, i + 1);
      const r = range.getClientRects()[0];
      if (!r) return;
      if (place && Math.abs(r.y - place.y) > 3) { flush(); line = ''; place = null; }
      place = place || r; line += letter;
    });
    flush();
  };
  const drawing = svg => {
    const r = svg.getBoundingClientRect(), copy = svg.cloneNode(true);
    const from = [...svg.querySelectorAll('*')], to = [...copy.querySelectorAll('*')];
    from.forEach((e, i) => {
      const s = getComputedStyle(e), t = to[i];
      if (getComputedStyle(e).display === 'none') { t.remove(); return; }
      t.removeAttribute('class');
      if (e.tagName === 'text' || e.tagName === 'tspan') {
        t.setAttribute('fill', s.fill); t.setAttribute('font-size', parseFloat(s.fontSize));
      } else if (e.tagName !== 'g') {
        t.setAttribute('fill', s.fill); t.setAttribute('fill-opacity', s.fillOpacity);
        t.setAttribute('stroke', s.stroke); t.setAttribute('stroke-width', s.strokeWidth);
        if (s.strokeDasharray !== 'none') t.setAttribute('stroke-dasharray', s.strokeDasharray);
      }
      for (const a of [...t.attributes]) if (/^-?\\d+\\.\\d{2,}$/.test(a.value))
        a.value = number(parseFloat(a.value));
    });
    copy.setAttribute('x', number(r.x)); copy.setAttribute('y', number(r.y));
    copy.setAttribute('width', number(r.width)); copy.setAttribute('height', number(r.height));
    copy.removeAttribute('class');
    out.push(new XMLSerializer().serializeToString(copy).replace(/ xmlns="[^"]*"/, ''));
  };
  const walk = e => {
    const s = getComputedStyle(e), r = e.getBoundingClientRect();
    if (s.display === 'none' || s.visibility === 'hidden' || r.y > height) return;
    if (e.tagName.toLowerCase() === 'svg') { drawing(e); return; }
    if (e.tagName === 'INPUT') {
      const at = r.x + r.width * (e.value - e.min) / (e.max - e.min), y = r.y + r.height / 2;
      out.push(`<line x1="${r.x}" x2="${r.right}" y1="${y}" y2="${y}" stroke="#c9cfd6"
        stroke-width="6" stroke-linecap="round"/><line x1="${r.x}" x2="${at}" y1="${y}" y2="${y}"
        stroke="${s.accentColor}" stroke-width="6" stroke-linecap="round"/><circle cx="${at}"
        cy="${y}" r="7" fill="${s.accentColor}"/>`);
      return;
    }
    box(r, s);
    for (const child of e.childNodes) {
      if (child.nodeType === 3) words(child);
      else if (child.nodeType === 1) walk(child);
    }
  };
  walk(document.body);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}"
 font-family="system-ui, sans-serif" role="img" aria-label="The report of the demo">
<rect width="${width}" height="${height}" fill="#f5f7f9"/>\\n${out.join('\\n')}\\n</svg>\\n`;
}
"""


def main(page: str, target: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(Path(page).resolve().as_uri())
        Path(target).write_text(tab.evaluate(DRAW, [WIDTH, HEIGHT]), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
