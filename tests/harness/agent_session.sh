#!/bin/sh
# The agent's life in one JVM, seen by agent_reader: the accounts are exact, the weights right, threads of 3 ms are
# seen, the agent is silent after its reader was killed, streams again for the next reader, and leaves nothing after
# DETACH. Usage: agent_session.sh JAVA_HOME LIBRARY READER AgentBusy.java
set -u
java=$1/bin/java lib=$2 reader=$3 source=$4
[ -x "$java" ] && command -v jattach >/dev/null || exit 77
dir=$(mktemp -d) failed=0
"$java" -Xmx256m "$source" >"$dir/out" 2>"$dir/err" &
jvm=$!
trap 'kill $jvm 2>/dev/null; wait $jvm 2>/dev/null; rm -rf "$dir"' EXIT

wrong() {
	echo "WRONG: $*"
	failed=1
}
ours() { # open files that could be the agent's: the JVM opens and closes its own
	ls -l "/proc/$jvm/fd" | grep -Ec 'kindling|anon_inode|pipe:|/proc/|/dev/shm'
}
wait_for() { # COMMAND...: up to 30 s
	for i in $(seq 300); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}
as_before() { # the JVM itself opens files in /proc for a moment
	[ "$(ours)" -eq "$fds" ]
}
no_thread() { # the thread ends a moment after it has closed its last descriptor
	[ -z "$(ls "/proc/$jvm/task" | while read -r t; do cat "/proc/$jvm/task/$t/comm" 2>/dev/null; done |
		grep kindling)" ]
}
no_timers() {
	! grep -q '^ID' "/proc/$jvm/timers"
}
read_it() { # NAME OPTIONS...
	out=$dir/$1
	shift
	timeout 60 "$reader" "$@" "$jvm" >"$out" || wrong "agent_reader $*: $(tail -n 3 "$out")"
	cat "$out"
}
share() { # share of threads whose name begins with $1, in %
	awk -v name="$1" 'index($0, "% " name) { sum += $1 } END { print int(sum + 0.5) }' "$dir/first"
}

wait_for grep -q ready "$dir/out" || { echo "the JVM did not start"; exit 1; }
jattach "$jvm" properties >/dev/null # the attach listener belongs to the JVM: start it before counting
fds=$(ours)

read_it first -d 6 -l "$lib"
ratio=$(sed -n 's/.* ratio=//p' "$dir/first")
awk -v r="$ratio" 'BEGIN { exit !(r > 0.96 && r < 1.04) }' || wrong "weights are $ratio of the CPU time"
[ "$(share short)" -ge 20 ] || wrong "threads of 3 ms have $(share short) % only"
wait_for as_before || wrong "$(ours) fds after detach, $fds before"
wait_for no_thread || wrong "the agent's thread is still there"

# forced drops: first a slow reader with a tiny pipe, then a tiny ring
read_it slow -d 4 -l "$lib" -p 4096 -w 1000 -i 4000
grep -q 'drop.pipe_full' "$dir/slow" || wrong "a slow reader cost nothing: not a test"
read_it stop -d 3 -l "$lib" -s

"$reader" -l "$lib" -d 30 "$jvm" >"$dir/killed" & # the pid of the reader itself, not of a wrapper
victim=$!
sleep 2
kill -KILL $victim
wait $victim 2>/dev/null
sleep 1
if [ "$(grep -o '/[^ ]*libkindling[^ ]*' "/proc/$jvm/maps" | sort -u | wc -l)" -eq 1 ]; then
	no_timers || wrong "timers run 1 s after the reader was killed"
fi
read_it back -d 2 -k
read_it again -d 2
wait_for as_before || wrong "$(ours) fds at the end, $fds at the beginning"
[ -s "$dir/err" ] && wrong "stderr of the application: $(cat "$dir/err")"
[ "$(cat "$dir/out")" = ready ] || wrong "stdout of the application: $(cat "$dir/out")"
exit $failed
