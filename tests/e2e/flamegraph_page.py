#!/usr/bin/env python3
"""The flame graph page in a real browser: flamegraph_page.py WRITE_PAGE. Exit 77 without chromium.

A script is appended to the page that uses it as a person would and leaves what it saw in the
document, which chromium prints (--dump-dom).
"""
import json, os, re, shutil, subprocess, sys, tempfile

ACT = """
<script>
addEventListener("load", () => {
  const seen = {}, g = $("graph");
  const type = (el, text) => { el.value = text; el.dispatchEvent(new Event("input")); };
  const ink = () => { // how many different colours lie along the middle column of the canvas
    const d = g.getContext("2d").getImageData(g.width >> 1, 0, 1, g.height).data, c = new Set();
    for (let i = 0; i < d.length; i += 4) c.add(d.slice(i, i + 4).join());
    return c.size;
  };
  const start = performance.now();
  rebuild();
  seen.rebuild_ms = performance.now() - start;
  seen.title = $("title").textContent;
  seen.facts = $("facts").textContent;
  seen.hit = window.hit || 0;
  seen.images = document.images.length;
  seen.ink = ink();
  seen.total = root.total;
  seen.rows = rows;
  scrollTo(0, document.body.scrollHeight); draw();
  seen.ink_below = ink();
  scrollTo(0, 0); draw();
  type($("search"), "img src=x");
  seen.matched = $("matched").textContent;
  type($("search"), "(");
  seen.bad_search = $("search").validationMessage !== "";
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  seen.after_escape = $("matched").textContent + $("search").value;
  const box = boxes.find(b => b[0].parent === root), r = g.getBoundingClientRect();
  const at = { clientX: r.left + box[1] + 2, clientY: r.top + box[2] + 4, bubbles: true };
  g.dispatchEvent(new MouseEvent("mousemove", at));
  seen.tip = $("tip").textContent;
  g.dispatchEvent(new MouseEvent("click", at));
  seen.zoomed = zoom === box[0];
  $("reset").click();
  seen.reset = zoom === root;
  const flame = boxes.find(b => b[0] === root)[2];
  $("icicle").click();
  seen.turned = boxes.every(b => b[0] !== root) || boxes.find(b => b[0] === root)[2] !== flame;
  $("byThread").click();
  seen.towers = root.list.map(n => n.name);
  seen.tower_total = root.total;
  $("thread").value = "1"; $("thread").dispatchEvent(new Event("change"));
  seen.one_thread = root.total;
  seen.methods = [...$("methods").rows].map(r => r.cells[4].textContent);
  const pre = document.createElement("pre");
  pre.id = "seen"; pre.textContent = JSON.stringify(seen);
  document.body.append(pre);
});
</script>
"""


def browse(chromium, page, folder):
    path = os.path.join(folder, "page.html")
    with open(path, "w") as f:
        f.write(page.replace("</body>", ACT + "</body>"))
    run = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser",
         "--virtual-time-budget=10000", "--window-size=1200,800", "--dump-dom", "file://" + path],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=90)
    found = re.search(r'<pre id="seen">(.*?)</pre>', run.stdout, re.S)
    assert found, "the page's script did not get to its end"
    text = found.group(1)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u00a0"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return json.loads(text)


def check(seen):
    evil = '</script><img src=x onerror="window.hit=1">'
    assert seen["hit"] == 0 and seen["images"] == 0, "a name became markup"
    assert seen["title"] == "4711 <b>org.shop.Main</b>" + evil, seen["title"]
    for part in ("one sample per 10 ms", "1000 taken = 990 delivered + 10 dropped", "4.000 s of CPU"):
        assert part in seen["facts"], (part, seen["facts"])
    assert seen["total"] == 4_000_000_000
    assert seen["ink"] > 2 and seen["ink_below"] > 2, "nothing was drawn"
    assert seen["matched"] == "25.00% matched", seen["matched"]
    assert seen["bad_search"] and seen["after_escape"] == "", seen
    assert " of all" in seen["tip"] and "samples" in seen["tip"] and "Shop.java:" in seen["tip"], seen["tip"]
    assert seen["zoomed"] and seen["reset"] and seen["turned"], seen
    assert seen["towers"] == ["[main tid=100]", "[worker tid=101]"], seen["towers"]
    assert seen["tower_total"] == seen["total"] and seen["one_thread"] == 1_000_000_000
    assert seen["methods"] == ["org.shop.Class7." + evil], seen["methods"]


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("no chromium here")
        return 77
    for nodes, depth in ((1000, 30), (100_000, 60), (3000, 3000)):
        page = subprocess.run([sys.argv[1], str(nodes), str(depth)], check=True, stdout=subprocess.PIPE, text=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            seen = browse(chromium, page.stdout, folder)
        print(f"{nodes} nodes, depth {depth}: {seen['rows']} rows, built and drawn in {seen['rebuild_ms']:.0f} ms")
        check(seen)
    return 0


sys.exit(main())
