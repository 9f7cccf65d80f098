#!/usr/bin/env python3
"""The timeline's page in a real browser, with made-up data: timeline_page.py PAGE [--judge]. Exit 77 without chromium.

A script is appended to the page that uses it as a person would, measures frames, and says what it saw on the console.
With --judge 200 threads over 60 s have to open within 2 s and move at 30 frames a second or more: the best of up to five
runs counts, because the machine may do other work."""
import json, os, re, select, shutil, subprocess, sys, tempfile, time

ACT = """
<script>
addEventListener("load", async () => {
  const seen = { opened_ms, hit: window.hit || 0, images: document.images.length }, g = $("graph");
  const frame = () => new Promise(requestAnimationFrame);
  const at = (x, y) => { const b = g.getBoundingClientRect(); return { clientX: b.left + x, clientY: b.top + y, bubbles: true, pointerId: 1 }; };
  const colours = y => { // different colours along a line of the canvas
    const d = g.getContext("2d").getImageData(NAMES * devicePixelRatio, y * devicePixelRatio, g.width - NAMES * devicePixelRatio, 1).data, c = new Set();
    for (let i = 0; i < d.length; i += 4) c.add(d.slice(i, i + 3).join());
    return c.size;
  };
  seen.first = [view.from, view.to]; draw(); seen.spans = spansDrawn;
  const middle = row => AXIS + row.place * ROW - view.top + 2 + BAR / 2;
  const move = async (n, act) => { // frames in a second while something moves all the time
    const begin = performance.now(), before = frames;
    for (let i = 0; i < n; i++) { act(i); await frame(); }
    return (frames - before) / (performance.now() - begin) * 1000;
  };
  seen.title = $("title").textContent; seen.facts = $("facts").textContent; seen.bad = $("bad").textContent;
  seen.rows = order.map(r => r.label); seen.legend = [...$("legend").children].map(e => e.textContent);
  seen.sums = shown;
  draw();
  seen.colours = colours(middle(order[0]));
  if (P.measure) {
    seen.pan = await move(60, i => look(SPAN / 4 + i * 1e8, SPAN / 2 + i * 1e8));
    seen.pan_all = await move(60, i => { look(0, SPAN); scroll(i * 7); });
    seen.zoom = await move(60, i => zoom(i % 2 ? 0.8 : 1.25, SPAN / 2));
  }
  look(0, SPAN); scroll(0); draw();
  const painted = (label, ns, list) => { // is the row's state at that time painted with that list of colours?
    const row = rows.find(r => r.label === label), i = row.begin.findIndex((b, k) => b <= ns && ns < row.end[k]), k = devicePixelRatio;
    const pixel = new Uint32Array(g.getContext("2d").getImageData(Math.round(x(ns) * k), Math.round(middle(row) * k), 1, 1).data.buffer)[0];
    return pixel === list[row.state[i]];
  };
  if (P.asked.trace) {
    look(9e8, 3e9); draw();
    seen.painted = [painted("waiter", 2.4e9, paints.full), painted("owner", 1.015e9, paints.faint), painted("owner", 1.015e9, paints.full)];
    g.dispatchEvent(new PointerEvent("pointermove", at(x(1.015e9), middle(rows.find(r => r.label === "owner")))));
    seen.other_tip = $("tip").textContent;
    look(0, SPAN); draw();
  }
  const asleep = rows.find(r => r.label === "asleep");
  if (asleep) seen.other = words({ row: asleep, item: asleep.items[0] }).join(" | ");
  // a wait under the pointer
  const row = rows.find(r => r.label === "waiter");
  if (row) {
    const i = row.items.findIndex(k => k.event[OWNER]);
    look(row.begin[i] - 50e6, row.end[i] + 50e6); draw();
    seen.arrows = arrowsDrawn;
    const where = at(x((row.begin[i] + row.end[i]) / 2), middle(row));
    g.dispatchEvent(new PointerEvent("pointermove", where));
    seen.tip = $("tip").textContent; seen.tip_shown = $("tip").style.display;
    g.dispatchEvent(new PointerEvent("pointerdown", where));
    g.dispatchEvent(new PointerEvent("pointerup", where));
    await frame();
    seen.detail = $("detail").textContent;
    g.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: -200 }));
    seen.zoomed = (view.to - view.from) / (row.end[i] - row.begin[i] + 100e6);
    look(row.begin[i], row.begin[i] + 1000); draw();
    seen.least = view.to - view.from;
    dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
    seen.whole = view.to - view.from === SPAN;
    dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
    const before = view.from;
    dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    seen.keys = view.to - view.from === SPAN / 2 && view.from > before;
    look(SPAN / 4, SPAN / 2);
    const left = view.from;
    g.dispatchEvent(new PointerEvent("pointerdown", at(600, 60)));
    g.dispatchEvent(new PointerEvent("pointermove", at(500, 60)));
    g.dispatchEvent(new PointerEvent("pointerup", at(500, 60)));
    seen.dragged = view.from > left;
    g.dispatchEvent(new PointerEvent("pointerdown", { ...at(400, 60), shiftKey: true }));
    g.dispatchEvent(new PointerEvent("pointermove", { ...at(500, 60), shiftKey: true }));
    g.dispatchEvent(new PointerEvent("pointerup", { ...at(500, 60), shiftKey: true }));
    seen.selected = (view.to - view.from) / (SPAN / 4) * plot() / 100;
    const type = text => { $("search").value = text; $("search").dispatchEvent(new Event("input")); };
    type("Stock@abc"); seen.matched = $("matched").textContent;
    dispatchEvent(new KeyboardEvent("keydown", { key: "n" }));
    seen.next = view.picked && view.picked.row.label;
    type("trace-of-it"); seen.matched_trace = $("matched").textContent;
    type("("); seen.bad_search = $("search").validationMessage !== "" && $("matched").textContent !== "";
    dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    seen.after_escape = $("search").value + $("matched").textContent;
    $("idle").click(); seen.without_idle = order.map(r => r.label); $("idle").click();
    look(0, SPAN); $("arrows").click(); draw(); seen.no_arrows = arrowsDrawn; $("arrows").click();
    $("order").value = "name"; $("order").dispatchEvent(new Event("change")); seen.by_name = order.map(r => r.label);
    const band = bands[0], on = at(x((band.begin + band.end) / 2), stage.height - 5);
    look(band.begin - 1e6, band.end + 1e6); draw();
    g.dispatchEvent(new PointerEvent("pointermove", at(x((band.begin + band.end) / 2), stage.height - 5)));
    seen.band = $("tip").textContent;
  }
  console.log("SEEN" + JSON.stringify(seen) + "END");
});
addEventListener("error", e => console.log('SEEN{"error":' + JSON.stringify(e.message) + "}END"));
addEventListener("unhandledrejection", e => console.log('SEEN{"error":' + JSON.stringify(String(e.reason)) + "}END"));
</script>
"""
EVIL = '</script><img src=x onerror="window.hit=1">'
FROM = 1795423891595671552
S, MS = 10**9, 10**6


def zero():
    return {k: {"events": 0, "ns": 0, "inside_ns": 0} for k in ("cpu", "wall", "lock", "offcpu", "band")}


def answer(threads, seconds=10):
    return {"format": "kindling timeline 1", "pid": 4711, "name": "org.shop.Main " + EVIL, "from_ns": FROM,
            "to_ns": FROM + seconds * S, "since_ns": FROM - S, "forgotten": False, "asked": {"thread": "", "trace": ""},
            "reasons": {"lock": ["enter", "wait", "park"], "band": ["safepoint", "gc"],
                        "offcpu": ["lock", "park", "wait", "sleep", "poll", "socket", "runqueue", "other"]},
            "cpu": [], "wall": [], "lock": [], "offcpu": [], "band": [],
            "threads": [{"tid": 100 + i, "ns_tid": 100 + i, "thread": name} for i, name in enumerate(threads)],
            "frames": [["java.lang.Thread.run", "java", 10], ["org.shop.Main.work", "c2", 20], [EVIL, "native", -1]],
            "nodes": [[0, 0], [0, 0], [1, 1], [2, 2]], "locks": [["org.shop.Stock", "abc"]],
            "traces": [["trace-of-it", "span-of-it"]], "sums": zero(), "open": {"events": 0, "ns": 0, "inside_ns": 0},
            "open_offcpu": {"events": 0, "ns": 0, "inside_ns": 0},
            "left_out": zero(), "no_room": zero()}


def add(a, kind, row):
    a[kind].append(row)
    goes_on = kind in ("lock", "offcpu") and row[6] & 4
    s = a["open" if kind == "lock" else "open_offcpu"] if goes_on else a["sums"][kind]
    s["events"] += row[11] if len(row) > 5 else 1
    s["ns"] += row[2]


def small():
    a = answer(["waiter", "owner", "pool-1", EVIL, "asleep"])
    add(a, "lock", [1, 2 * S, 800 * MS, 2, 1, 0, 0, 1, 2, 3, 2, 1, 0, -1])
    add(a, "lock", [1, 5 * S, 5 * S, 2, 0, 2, 4 | 2, 1, 0, 0, 0, 1, 0, -1])
    add(a, "lock", [3, -3 * S, 12 * S, 2, 0, 2, 1 | 8, 0, 0, 0, 0, 17, 0, -1])
    add(a, "offcpu", [2, 1 * S, 30 * MS, 2, 0, 5, 0, 0, 0, 0, 0, 1, 2 * MS, 45])
    add(a, "offcpu", [2, 4 * S, 3000, 2, 0, 6, 0, 0, 0, 0, 0, 1, 3000, -1])
    add(a, "offcpu", [1, 5 * S, 5 * S, 0, 0, 1, 4 | 16, 1, 0, 0, 0, 1, 0, 202])
    add(a, "offcpu", [5, 1 * S, 9 * S, 0, 0, 7, 4, 0, 0, 0, 0, 1, 0, 202])
    for i in range(80):
        add(a, "cpu", [2, 2 * S + i * 10 * MS, 10 * MS, 3, 1])
    add(a, "wall", [4, 7 * S, 20 * MS, 3, 0])
    add(a, "band", [0, 3 * S, 40 * MS, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, -1])
    return a


def large():
    """200 threads over 60 s: 240,000 samples and intervals."""
    a = answer(["http-nio-8080-exec-%d" % i for i in range(200)], 60)
    a["measure"] = True
    a["frames"] = [["org.shop.Class%d.method%d" % (i % 300, i), "c2", i] for i in range(3000)]
    a["nodes"] = [[0, 0]] + [[max(0, i - 1 - i % 7), i % 3000] for i in range(1, 20000)]
    x = 12345
    for t in range(1, 201):
        at = 0
        while at < 60 * S:
            x = (x * 1103515245 + 12345) % 2**31
            length = 1 * MS + x % (150 * MS)
            add(a, "lock" if x % 5 == 0 else "offcpu",
                [t, at, length, 1 + x % 19999, 0, x % 3 if x % 5 == 0 else x % 8, x % 11 == 0, 1, 1 + x % 200 if x % 5 == 0 else 0, 0, 0, 1, 0, -1])
            at += length + x % (10 * MS)
        for i in range(400):
            add(a, "cpu", [t, (i * 150 + x % 150) * MS, 10 * MS, 1 + (x + i) % 19999, 0])
    return a


def browse(chromium, page, data, folder):
    path = os.path.join(folder, "page.html")
    text = json.dumps(data).replace("<", "\\u003c")
    with open(path, "w") as f:
        f.write(page.replace("@TIMELINE@", text).replace("</body>", ACT + "</body>"))
    browser = subprocess.Popen(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=%s/browser" % folder,
         "--enable-logging=stderr", "--window-size=1400,1000", "--remote-debugging-port=0", "file://" + path],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        return read_seen(browser)
    finally:
        os.killpg(browser.pid, 9)
        browser.wait()


def read_seen(browser, seconds=120):
    said, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([browser.stderr], [], [], 1)[0]:
            more = os.read(browser.stderr.fileno(), 1 << 16)
            if not more:
                break
            said += more
        found = re.search(rb'SEEN(\{.*\})END', said, re.S)
        if found:
            seen = json.loads(found.group(1))
            assert "error" not in seen, seen
            return seen
    raise AssertionError("the page's script did not get to its end: %s" % said[-2000:].decode(errors="replace"))


def check_small(seen):
    assert seen["hit"] == 0 and seen["images"] == 0, "a name became markup"
    assert EVIL in seen["title"] and EVIL in seen["rows"], seen["title"]
    assert seen["bad"] == "", seen["bad"]
    for words in ("80 CPU samples (800 ms)", "18 waits (12.8 s)", "2 intervals off the CPU (30 ms)", "1 wall-clock samples (20 ms)",
                  "1 waits have not ended (5 s)", "2 intervals off the CPU have not ended (14 s)", "1 pauses (40 ms)"):
        assert words in seen["facts"], (words, seen["facts"])
    assert seen["sums"]["lock"] == {"events": 18, "ns": 12800 * MS}, seen["sums"]
    assert any(t.startswith("waits for a monitor 800 ms") for t in seen["legend"]), seen["legend"]
    assert seen["rows"][0] == "waiter" and seen["colours"] >= 3, seen
    assert seen["arrows"] == 1 and seen["no_arrows"] == 0, seen
    for words in ("waiter (100)", "waits for a monitor: 800 ms", "lock: org.shop.Stock@abc", "held by: owner", "woken by: owner",
                  "trace trace-of-it, span span-of-it", "at org.shop.Main.work:20"):
        assert words in seen["tip"], (words, seen["tip"])
    assert "The owner's stack" in seen["detail"] and "java.lang.Thread.run:10" in seen["detail"], seen["detail"]
    assert abs(seen["zoomed"] - 0.5) < 0.01 and seen["least"] == 1000 and seen["whole"] and seen["keys"], seen
    assert seen["dragged"] and abs(seen["selected"] - 1) < 0.05, seen["selected"]
    assert seen["matched"] == "2 events, 5.8 s" and seen["next"] == "waiter", (seen["matched"], seen["next"])
    assert seen["matched_trace"] == "81 events, 1.6 s", seen["matched_trace"]
    assert seen["bad_search"] and seen["after_escape"] == "", seen
    assert re.search(r"^asleep \(104\) . off the CPU, otherwise: 9 s from .*, not ended . system call 202$", seen["other"]), seen["other"]
    assert "asleep" in seen["by_name"] and "asleep" not in seen["without_idle"], seen
    assert "pool-1" not in seen["without_idle"] and "pool-1" in seen["by_name"], seen
    assert seen["by_name"] == sorted(seen["by_name"], key=str.lower), seen["by_name"]
    assert seen["band"].startswith("All threads: gc"), seen["band"]


def check_traced(seen):
    # the trace and a quarter of it on each side
    assert [round(ns / MS) for ns in seen["first"]] == [2000 - 201, 2800 + 201], seen["first"]
    assert seen["spans"] == 2 and sorted(seen["rows"][:2]) == ["owner", "waiter"], seen
    assert seen["painted"] == [True, True, False], seen["painted"]
    assert "the trace was seen for 800 ms in 2 threads" in seen["facts"], seen["facts"]
    assert "not of the trace" in seen["other_tip"] and "not of the trace" not in seen["tip"], (seen["other_tip"], seen["tip"])


def check_wrong_sums(seen):
    assert "the page shows 80 CPU samples" in seen["bad"] and "of 81" in seen["bad"], seen["bad"]
    assert "had no room" in seen["bad"] and "5 waits (1 ms) found no room" in seen["bad"], seen["bad"]
    assert "not of what was asked for: 3 CPU samples (30 ms)" in seen["facts"], seen["facts"]


def is_fast(best):
    return best["opened_ms"] <= 2000 and min(best[k] for k in ("pan", "pan_all", "zoom")) >= 30


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("SKIPPED: there is no chromium")
        return 1 if os.environ.get("CI") else 77
    with open(sys.argv[1]) as f:
        page = f.read()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        check_small(browse(chromium, page, small(), folder))
        traced = small()
        traced["asked"]["trace"] = "trace-of-it"
        check_traced(browse(chromium, page, traced, folder))
        wrong = small()
        wrong["sums"]["cpu"]["events"] += 1
        wrong["no_room"]["lock"] = {"events": 5, "ns": MS}
        wrong["left_out"]["cpu"] = {"events": 3, "ns": 30 * MS}
        wrong.update(since_ns=FROM + S, forgotten=True)
        check_wrong_sums(browse(chromium, page, wrong, folder))
        data, runs = large(), []
        events = sum(len(data[k]) for k in ("cpu", "lock", "offcpu"))
        judged = "--judge" in sys.argv
        for _ in range(5 if judged else 1):
            seen = browse(chromium, page, data, folder)
            assert seen["bad"] == "" and len(seen["rows"]) == 200, seen["bad"]
            runs.append({k: seen[k] for k in ("opened_ms", "pan", "pan_all", "zoom")})
            best = {k: (min if k == "opened_ms" else max)(r[k] for r in runs) for k in runs[0]}
            if is_fast(best):
                break
        print("%d events of 200 threads over 60 s: open after %.0f ms; frames a second: %.0f moved, %.0f moved with all of it in "
              "view, %.0f zoomed (best of %d runs)" % (events, best["opened_ms"], best["pan"], best["pan_all"], best["zoom"], len(runs)))
        assert not judged or is_fast(best), runs
    return 0


if __name__ == "__main__":
    sys.exit(main())
