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
  seen.bad_search = $("search").validationMessage !== "" && $("bad").textContent;
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  seen.after_escape = $("matched").textContent + $("search").value + $("bad").textContent;
  seen.legend = [...$("legend").children].map(e => e.textContent);
  const method7 = "org.shop.Class7.";
  type($("include"), "Class7");
  seen.include = root.total; seen.include_all = all;
  seen.in_view = $("focus").textContent; seen.file_facts = $("facts").textContent;
  type($("include"), "[");
  seen.bad_include = $("bad").textContent; seen.include_kept = root.total;
  type($("include"), "");
  type($("exclude"), "Class7\\.");
  seen.exclude = root.total;
  type($("exclude"), "no such method");
  seen.exclude_none = root.total; seen.exclude_bad = $("bad").textContent;
  type($("exclude"), "");
  dispatchEvent(new KeyboardEvent("keydown", { key: "r" }));
  const sum = list => list.reduce((s, n) => s + n.total, 0);
  seen.reversed = pressed("reverse"); seen.reversed_total = root.total;
  const owner = n => n.frame && n.frame.owner, leaves = root.list.flatMap(n => owner(n) ? n.list : [n]);
  seen.selfs = sum(leaves); seen.self7 = leaves.filter(n => n.name.startsWith(method7)).map(n => n.total);
  dispatchEvent(new KeyboardEvent("keydown", { key: "r" }));
  let deep = root;
  while (deep.list.length && (deep === root || owner(deep) || deep.list[0].list.length)) deep = deep.list[0];
  seen.called = deep.name; seen.caller = deep.parent.name;
  callers(deep.name);
  seen.mixed = [...$("legend").children].some(e => e.textContent === KINDS.mixed[2]);
  let own = root;
  while (own === root || owner(own)) own = own.list[0];
  seen.callers_of = own.name; seen.callers = own.list.map(n => n.name); seen.callers_note = $("focus").textContent;
  seen.callers_sum = own.list.length === 0 || sum(own.list) <= own.total;
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  seen.callers_left = $("focus").textContent === "" && root.total === seen.total;
  const short = { name: "org.shop.cart.Cart$1.add", kind: "c2", frame: { class: "org.shop.cart.Cart$1", method: "add" } };
  seen.short = [900, 100, 80, 40, 10].map(room => fit(g.getContext("2d"), short, room));
  seen.shares = [...$("thread").options].map(o => o.textContent);
  seen.jvms = $("byJvm").hidden ? 0 : root.list.map(n => n.name);
  zoom = root; layout();
  const box = boxes.find(b => b[0].parent === root), r = g.getBoundingClientRect();
  const at = { clientX: r.left + box[1] + 2, clientY: r.top + box[2] + 4, bubbles: true };
  g.dispatchEvent(new MouseEvent("mousemove", at));
  seen.tip = $("tip").textContent;
  g.dispatchEvent(new MouseEvent("click", at));
  seen.zoomed = zoom === box[0];
  const low = boxes.find(b => b[0] === root);
  g.dispatchEvent(new MouseEvent("mousemove", { clientX: r.left + 2, clientY: r.top + low[2] + 4, bubbles: true }));
  seen.root_tip = $("tip").textContent;
  $("reset").click();
  seen.reset = zoom === root;
  const flame = boxes.find(b => b[0] === root)[2];
  $("icicle").click();
  seen.turned = boxes.every(b => b[0] !== root) || boxes.find(b => b[0] === root)[2] !== flame;
  if (several) $("byJvm").click();
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


def check(seen, jvms):
    evil = '</script><img src=x onerror="window.hit=1">'
    assert seen["hit"] == 0 and seen["images"] == 0, "a name became markup"
    title = "<b>org.shop.Main</b>" + evil
    assert seen["title"] == f"4711 {title}" + (f", 4712 {title}" if jvms else ""), seen["title"]
    for part in ("400 samples, mean interval 10 ms", "1000 taken = 990 delivered + 10 dropped", "4.000 s of CPU"):
        assert part in seen["facts"], (part, seen["facts"])
    assert seen["total"] == 4_000_000_000
    assert seen["ink"] > 2 and seen["ink_below"] > 2, "nothing was drawn"
    assert seen["matched"] == "25.00% matched", seen["matched"]
    assert seen["bad_search"].startswith("Search: Invalid regular expression") and seen["after_escape"] == "", seen
    for kind in ("Java, interpreted ", "Java, compiled by C2 ", "Java, inlined into its caller ", "matches the search"):
        assert any(text.startswith(kind) for text in seen["legend"]), (kind, seen["legend"])
    assert 99.9 < sum(float(text.rsplit(" ", 1)[1][:-1]) for text in seen["legend"][:-1]) < 100.1, seen["legend"]
    assert seen["include"] == seen["include_all"] == seen["include_kept"] >= 1_000_000_000, seen
    share = "In view: %.3f s, %d samples, %.2f%% of the file" % (
        seen["include"] / 1e9, seen["include"] / 1e7, 25e-9 * seen["include"])
    assert seen["in_view"] == (share if seen["include"] < seen["total"] else ""), (seen["in_view"], share)
    assert seen["file_facts"] == seen["facts"], "the file's accounts are not the view's"
    assert seen["bad_include"].startswith("Only stacks with: Invalid regular expression"), seen["bad_include"]
    assert seen["exclude"] == seen["total"] - seen["include"] and seen["exclude_none"] == seen["total"] and not seen["exclude_bad"], seen
    assert seen["reversed"] and seen["reversed_total"] == seen["selfs"] == seen["total"] and sum(seen["self7"]) == 1_000_000_000, seen
    assert seen["callers_of"] == seen["called"] and seen["caller"] in seen["callers"] and seen["callers_sum"], seen
    assert seen["callers_note"].startswith("Callers of " + seen["called"] + ": in "), seen["callers_note"]
    assert seen["callers_left"] and seen["mixed"], seen
    assert seen["short"][0] == "org.shop.cart.Cart$1.add" and seen["short"][1:4] == ["o.s.c.Cart$1.add", "Cart$1.add", "add"], seen["short"]
    assert seen["shares"][:2] == ["all threads", "75.00% main tid=100" + (" of " + title + " pid=4711" if jvms else "")], seen["shares"]
    assert seen["jvms"] == ([f"[{title} pid={pid}]" for pid in (4711, 4712)] if jvms else 0), seen["jvms"]
    assert " of all" in seen["tip"] and " of view" in seen["tip"] and "samples" in seen["tip"] and "Shop.java:" in seen["tip"] or jvms, seen["tip"]
    assert "100.00% of all" in seen["root_tip"] and "of view" not in seen["root_tip"], seen["root_tip"]
    assert seen["zoomed"] and seen["reset"] and seen["turned"], seen
    assert seen["towers"] == ["[main tid=100]", "[worker tid=101]"], seen["towers"]
    assert seen["tower_total"] == seen["total"] and seen["one_thread"] == 1_000_000_000
    assert seen["methods"] == ["org.shop.Class7." + evil], seen["methods"]


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("no chromium here")
        return 77
    for nodes, depth, jvms in ((1000, 30, []), (1000, 30, ["2"]), (100_000, 60, []), (3000, 3000, [])):
        page = subprocess.run([sys.argv[1], str(nodes), str(depth), *jvms], check=True, stdout=subprocess.PIPE, text=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            seen = browse(chromium, page.stdout, folder)
        print(f"{nodes} nodes, depth {depth}: {seen['rows']} rows, built and drawn in {seen['rebuild_ms']:.0f} ms")
        check(seen, jvms)
    return 0


sys.exit(main())
