"""Checks lock events against what the program LockKnown knows of its own waits. Pure: text in, verdicts out. A judge
takes (truth, events, rules) and returns a list of (right, text). spoil() makes, for each judge, wrong events that
it must reject."""
import bisect
import collections
import re

OPEN, CLOSED, LIMITED, SUM = 1, 2, 4, 8
SLACK_NS = 200_000  # between an event's time and the reading of the clock that stands for it
JDK = ("java/", "javax/", "jdk/", "sun/")

Wait = collections.namedtuple("Wait", "kind thread label begin end owner method pinned limited chance")
Event = collections.namedtuple(
    "Event", "begin duration tid thread kind flags name identity owner stack owner_stack")
# min_ns: the threshold; count, sum: allowed relative errors; virtual: the waiters are virtual threads
Rules = collections.namedtuple("Rules", "min_ns count sum virtual major")


class Truth:
    def __init__(self, text):
        self.locks, self.waits, self.holds = {}, [], collections.defaultdict(list)
        for line in text.splitlines():
            word, *rest = line.split()
            if word == "LOCK":
                self.locks[rest[0]] = (" ".join(rest[1:-1]).split("|"), int(rest[-1]))
            elif word == "WAIT":
                kind, thread, label, begin, end, owner, method, pinned, limited, chance = rest
                self.waits.append(Wait(kind, thread, label, int(begin), int(end), owner, method,
                                       pinned == "pinned", limited == "limited", chance == "chance"))
            elif word == "HOLD":
                self.holds[rest[0]].append((int(rest[2]), int(rest[3]), rest[1]))
        for holds in self.holds.values():
            holds.sort()
        self.threads = {w.thread for w in self.waits}

    def holders(self, label, at, slack=SLACK_NS):
        """The lock's holder at that time; unknown close to a change of hands."""
        return {thread for begin, end, thread in self.holds[label] if begin + slack <= at <= end - slack}


def group(wait):
    return re.sub(r"-(waiter|\d+)$", "", wait.thread)


def is_seen(wait, rules):
    """Must this wait have an event? None if that is a matter of chance."""
    if rules.virtual and wait.kind == "park" and (not wait.pinned or rules.major >= 24):
        return False
    took = wait.end - wait.begin
    if took < rules.min_ns:
        return False
    return True if took > 3 * rules.min_ns else None  # the thread may have had no CPU for a part of it


def ended(events):
    # a sum stands for idle waits of any length
    return [e for e in events if not e.flags & (OPEN | CLOSED | SUM)]


def match(truth, events):
    """([(wait, its events)], events of the program's waiters that match no wait)."""
    by_thread = collections.defaultdict(list)
    for e in ended(events):
        by_thread[e.thread, e.kind].append(e)
    pairs, used = [], set()
    for of in by_thread.values():
        of.sort(key=lambda e: e.begin)
    starts = {key: [e.begin for e in of] for key, of in by_thread.items()}
    for w in truth.waits:
        of = by_thread[w.thread, w.kind]
        low = bisect.bisect_left(starts.get((w.thread, w.kind), []), w.begin - SLACK_NS)
        mine = []
        while low < len(of) and of[low].begin <= w.end:
            if of[low].begin + of[low].duration <= w.end + SLACK_NS:
                mine.append(of[low])
                used.add(id(of[low]))
            low += 1
        pairs.append((w, mine))
    return pairs, [e for e in ended(events) if e.thread in truth.threads and id(e) not in used]


def matched(truth, events):
    return [(w, e) for w, mine in match(truth, events)[0] for e in mine]


def judge_counts(truth, events, rules):
    want, got, twice = collections.Counter(), collections.Counter(), collections.Counter()
    pairs, unasked = match(truth, events)
    for w, mine in pairs:
        seen = is_seen(w, rules)
        if seen:
            want[w.kind, w.chance, group(w)] += 1
            got[w.kind, w.chance, group(w)] += bool(mine)
            # another thread may take the lock first, so one lock() may be several parks
            twice[w.kind, w.chance] += len(mine) > 1 and not w.chance
        elif seen is False:
            unasked += mine
    result = []
    for kind, crowd in sorted({key[:2] for key in want}):
        n, have = (sum(v for key, v in of.items() if key[:2] == (kind, crowd)) for of in (want, got))
        few = ["%s %d/%d" % (key[2], got[key], v) for key, v in want.items() if key[:2] == (kind, crowd) and got[key] < v]
        lost = max(rules.count, 0.05) if crowd else rules.count
        result.append((n > 0 and have >= (1 - lost) * n, "%s%s: %d of %d waits %s" % (
            kind, " by chance" if crowd else "", have, n, few)))
        if not crowd:
            result.append((twice[kind, crowd] <= rules.count * n, "%s: %d waits reported twice" % (kind, twice[kind, crowd])))
    # loading a class, or joining a thread that ends, may be a wait for a lock of the JDK
    theirs = {c for classes, _ in truth.locks.values() for c in classes if not c.startswith("java.lang.")} | {"-"}
    long = [e for e in unasked if e.duration >= rules.min_ns and e.name in theirs]
    result.append((len(long) <= rules.count * len(pairs), "%d events of waits that were not %s" % (
        len(long), [(e.thread, e.kind, e.name, e.duration, e.stack[:3]) for e in long[:3]])))
    short = [e for e in ended(events) if e.duration < rules.min_ns]
    result.append((not short, "%d below the threshold of %d ns" % (len(short), rules.min_ns)))
    return result


def judge_sums(truth, events, rules):
    own, theirs, worst = collections.Counter(), collections.Counter(), {}
    for w, mine in match(truth, events)[0]:
        if is_seen(w, rules) and (mine or not (rules.count or w.chance)):
            key, took = (w.kind, w.chance), w.end - w.begin
            own[key] += took
            theirs[key] += sum(e.duration for e in mine)
            worst[key] = min(worst.get(key, (9, "")), (sum(e.duration for e in mine) / took, group(w)))
    result = []
    for key in sorted(own):
        off, may = abs(theirs[key] - own[key]), max(rules.sum, 0.12) if key[1] else rules.sum
        result.append((off <= max(may * own[key], 1_000_000), "%s%s: %.2f %% of the program's own time (%.1f ms); of one wait at worst %.1f %% (%s)" % (
            key[0], " by chance" if key[1] else "", 100 * theirs[key] / own[key], own[key] / 1e6, 100 * worst[key][0], worst[key][1])))
    return result or [(False, "no time of any kind")]


def judge_owners(truth, events, rules):
    right, all_, missing, bad, none = (collections.Counter() for _ in range(5))
    examples = []
    for w, e in matched(truth, events):
        if w.owner == "-":
            none[w.kind] += e.owner != "-"
            if e.owner != "-":
                examples.append((w.label, e.owner))
            continue
        could = {w.owner} if w.owner != "?" else truth.holders(w.label, e.begin)
        if not could:
            continue  # the program did not know an owner: the lock was between two holders
        all_[w.kind] += 1
        right[w.kind] += e.owner in could
        missing[w.kind] += e.owner == "-"
        if e.owner not in could and e.owner != "-":
            bad[w.kind] += 1
            examples.append((w.label, w.thread, e.owner, sorted(could)))
    result = []
    for kind in sorted(all_):
        share = right[kind] / all_[kind]
        result.append((share >= 0.99 and bad[kind] <= 0.01 * all_[kind],
                       "%s: owner right in %d of %d, missing in %d, wrong in %d %s" % (
                           kind, right[kind], all_[kind], missing[kind], bad[kind], examples[:3])))
    result.append((not sum(none.values()), "owners of what has none: %d %s" % (sum(none.values()), examples[:3])))
    return result if all_ else [(False, "no wait for an owner")]


def judge_classes(truth, events, rules):
    wrong, n = collections.Counter(), 0
    for w, e in matched(truth, events):
        n += 1
        if w.label == "-":
            right = e.name == "-"
        else:
            right = e.name in truth.locks[w.label][0]
        if not right:
            wrong[group(w), e.name] += 1
    return [(n > 0 and not wrong, "classes of %d, wrong: %s" % (n, dict(wrong.most_common(5))))]


def judge_identities(truth, events, rules):
    """Each lock has one identity, different from all others'; where the program can see its hash code, it is that."""
    seen, same, n, label_of, hashed = collections.defaultdict(set), 0, 0, {}, collections.Counter()
    for w, e in matched(truth, events):
        if w.label == "-":
            seen["-"].add(e.identity)
            continue
        n += 1
        seen[w.label].add(e.identity)
        same += e.identity and label_of.setdefault((e.name, e.identity), w.label) != w.label
        own = w.kind != "park" or truth.locks[w.label][0] in (["LockKnownScripts$Mailbox"], ["java.util.concurrent.Phaser"])
        if own:
            hashed[e.identity == truth.locks[w.label][1]] += 1
    several = [label for label, ids in seen.items() if len(ids) > 1]
    # nothing leads from a CompletableFuture's waiter to the future
    zero = [label for label, ids in seen.items() if 0 in ids and label != "-" and not label.startswith("completable#")]
    return [(n > 0 and not several, "locks with several identities: %d of %d %s" % (len(several), len(seen), several[:3])),
            (not same, "events with another lock's identity: %d" % same),
            (not zero, "without an identity: %s" % zero[:5]),
            (seen["-"] <= {0}, "identities of nothing: %s" % sorted(seen["-"])[:3]),
            (not hashed[False], "hash codes as the program's own: %d of %d" % (hashed[True], sum(hashed.values())))]


def judge_stacks(truth, events, rules):
    n = wrong = rootless = owners = owners_wrong = unread = 0
    examples = []
    for w, e in matched(truth, events):
        n += 1
        frames = [f.split(":")[0] for f in e.stack]
        own = next((f for f in frames if not f.startswith(JDK) and "$$Lambda" not in f and "." in f
                    and not f.startswith(("/", "["))), "-")
        if own != w.method and not (rules.virtual and own == "-" and "[unknown]" in frames):
            wrong += 1
            examples.append((w.thread, w.method, frames[:4]))
        if rules.virtual and "[unknown]" in frames:
            unread += 1  # frames that the collector is moving
            continue
        # a continuation has more frames below
        rootless += not any(f in ("java/lang/Thread.run", "java/lang/VirtualThread.run") for f in frames)
        if e.owner_stack:
            owners += 1
            # holders of the crowd may be on their way out of the method
            owners_wrong += not any("LockKnown" in f for f in e.owner_stack)
    return [(n > 0 and wrong <= 0.002 * n, "stacks of %d, in %d the program's frame is another %s" % (n, wrong, examples[:2])),
            (rootless <= 0.002 * n, "%d do not reach their root" % rootless),
            (unread <= 0.02 * n, "%d have frames that could not be read" % unread),
            (owners_wrong == 0, "owners' stacks: %d, without the program in them: %d" % (owners, owners_wrong))]


def judge_limits(truth, events, rules):
    wrong = [(w.thread, e.flags) for w, e in matched(truth, events) if bool(e.flags & LIMITED) != w.limited]
    return [(not wrong, "time limits: %d wrong %s" % (len(wrong), wrong[:3]))]


JUDGES = (judge_counts, judge_sums, judge_owners, judge_classes, judge_identities, judge_stacks, judge_limits)


def every(n, events, change):
    return [change(e) if i % n == 0 else e for i, e in enumerate(events)]


def spoil(events):
    """(description, the judge that must reject them, wrong events)."""
    rotated = [e.owner for e in events[1:] + events[:1]]
    yield "a third is missing", judge_counts, [e for i, e in enumerate(events) if i % 3]
    yield "a third comes twice", judge_counts, events + events[::3]
    yield "waits that were not", judge_counts, events + [e._replace(begin=e.begin + 10 ** 12) for e in events[::3]]
    yield "15 % too long", judge_sums, [e._replace(begin=e.begin - 0, duration=int(e.duration * 0.85)) for e in events]
    yield "owners of other locks", judge_owners, [e._replace(owner=o) for e, o in zip(events, rotated)]
    yield "one owner in five missing", judge_owners, every(5, events, lambda e: e._replace(owner="-"))
    yield "a class is wrong", judge_classes, every(50, events, lambda e: e._replace(name="java.lang.Object"))
    yield "identities move", judge_identities, [e._replace(identity=e.identity ^ (i > len(events) // 2)) for i, e in enumerate(events)]
    yield "one identity for all", judge_identities, [e._replace(identity=7, name="x") for e in events]
    yield "no identities", judge_identities, [e._replace(identity=0) for e in events]
    yield "the program's frame is missing", judge_stacks, every(20, events, lambda e: e._replace(
        stack=[f for f in e.stack if "LockKnown" not in f]))
    yield "no frames", judge_stacks, [e._replace(stack=["[unknown]"]) for e in events]
    yield "no roots", judge_stacks, every(20, events, lambda e: e._replace(stack=e.stack[:1]))
    yield "limits", judge_limits, every(10, events, lambda e: e._replace(flags=e.flags ^ LIMITED))


def judge_all(truth, events, rules):
    return [verdict for judge in JUDGES for verdict in judge(truth, events, rules)]


def blind(truth, events, rules):
    """Wrong events that their judge accepted: must be empty."""
    return [what for what, judge, wrong in spoil(events) if all(right for right, _ in judge(truth, wrong, rules))]


def made_up(truth, rules):
    """Events as a perfect agent would send them."""
    events, hold = [], 20_000
    for i, w in enumerate(truth.waits):
        if not is_seen(w, rules):
            continue
        owner = w.owner
        if owner == "?":
            owner = min(truth.holders(w.label, w.begin + hold // 2) or {"-"})
        classes, identity = truth.locks.get(w.label, (["-"], 0))
        events.append(Event(w.begin + hold // 2, w.end - w.begin - hold, i, w.thread, w.kind, LIMITED if w.limited else 0,
                            classes[0], identity, owner, [w.method + ":1", "java/lang/Thread.run:1"], []))
    return events
