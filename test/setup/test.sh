#!/usr/bin/env bash
# Runs every step of `make test`, and finally prints what ran, how long it took, what did not run,
# and why.
#
# Steps run in lanes, and lanes in parallel, but for two rules. What measures times, such as the
# demo's tests of failover, runs beside steps of low priority only. And the longest tests on real
# Kubernetes run at the end, in two lanes with a lab each: together they keep two processors busy. A
# step's output is printed in one piece when the step ends. If a step fails, the running steps finish
# and no more are started. Ctrl-C ends all of them.
set -eu -o pipefail
cd "$(dirname "$0")/../.."

# What runs together, a row after the other; the lanes of a row are separated by "|".
rows=(
  "setup build"
  "e2e web monitoring diagnose many | compile lint arch"
  "unit kernel script | generate-check fuzz-check"
)
# These steps compute, and run at low priority so that they do not disturb steps that measure time.
yielding=" compile lint arch generate-check fuzz-check kube-programs "

work=$(mktemp -d)
times=$work/times
export TEST_TIMES=$times
: >"$times"
mkfifo "$work/events"
exec {events}<>"$work/events"
jobs=() failed=() running=() formerly=
declare -A took
begin=$SECONDS

# stop ends the lanes, which end their steps, and waits until the steps have cleaned up.
stop() {
  trap '' INT TERM
  for job in "${jobs[@]}"; do kill -INT -- "-$job" 2>/dev/null || true; done
  wait || true
}
trap 'stop; rm -rf "$work"; [ -z "$formerly" ] || echo "$formerly" >$instances' EXIT
trap 'interrupted; exit 130' INT TERM

interrupted() {
  stop
  local step
  for step in "${running[@]}"; do printf '\n== %s, interrupted; the end of its output:\n' "$step"; tail -n 30 "$work/$step.log"; done
  echo "make test: interrupted while running ${running[*]}" >&2
}

# run runs one step. It writes a line to events when the step begins, and one with the outcome when
# it ends.
run() {
  local yield=() status=0 start=$SECONDS
  [[ $yielding != *" $1 "* ]] || yield=(nice -n 10)
  echo "begin $1" >&"$events"
  "${yield[@]}" make --no-print-directory "$1" >"$work/$1.log" 2>&1 </dev/null || status=$?
  echo "end $1 $status $((SECONDS - start))" >&"$events"
  return $status
}

# lane runs steps one after the other, until one fails here or elsewhere.
lane() {
  trap 'exit 130' INT
  local step
  for step; do
    [ ! -e "$work/failed" ] || break
    run "$step" || { : >"$work/failed"; break; }
  done
  echo "over" >&"$events"
}

# together runs lanes in parallel, and prints their steps' output, until all lanes are over.
together() {
  local left=$# lane line='' more what step status seconds
  set -m # each lane gets its own process group, so that all of it can be ended
  for lane; do
    # shellcheck disable=SC2086 # a list of words
    lane $lane &
    jobs+=($!)
  done
  set +m
  while [ "$left" -gt 0 ]; do
    # On a busy machine the time can be over in the middle of a line.
    if ! IFS='' read -r -t 60 -u "$events" more; then
      line+=$more
      printf -- '-- after %d min, running: %s\n' $(((SECONDS - begin) / 60)) "${running[*]}"
      kill -0 "${jobs[@]}" 2>/dev/null || { echo "make test: all lanes were killed" >&2; exit 1; }
      continue
    fi
    read -r what step status seconds <<<"$line$more"
    line=''
    case $what in
      begin) running+=("$step") ;;
      end) ended "$step" "$status" "$seconds" ;;
      over) left=$((left - 1)) ;;
    esac
  done
  wait
  jobs=()
}

# ended records a step's outcome and prints its output in one piece.
ended() {
  local still=() r
  for r in "${running[@]}"; do [ "$r" = "$1" ] || still+=("$r"); done
  running=("${still[@]}")
  printf '\n== %s\n' "$1"
  cat "$work/$1.log"
  if [ "$2" = 0 ]; then
    took[$1]=$(printf 'ok     %4d s' "$3")
    return
  fi
  took[$1]="FAILED after $3 s"
  failed+=("$1")
  echo "FAILED in $1; run it alone with: make $1"
  [ ${#running[@]} = 0 ] || echo "waiting for the running steps (Ctrl-C ends them): ${running[*]}"
}

# finish prints the summary of all steps.
finish() {
  printf '\n== make test\n'
  local step
  for step in "${steps[@]}"; do printf '  %-15s %s\n' "$step" "${took[$step]:-not run}"; done
  printf '  %-15s        %4d s\n' together $((SECONDS - begin))
  printf '\nthe slowest tests\n'
  go run ./test/report slowest <"$times"
  echo
  grep -hE '^(SKIP|FLAKY) ' "$work"/*.log || true
  # The totals of all steps, in the same form as each step's.
  cat "$work"/*.log | awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
}

# roomForLabs succeeds if two labs with nodes fit on the machine beside other tests, and for that raises
# the limit of inotify instances, if it may, until this script ends. test/kubelab/README.md has the
# numbers.
instances=/proc/sys/fs/inotify/max_user_instances
enough=256
roomForLabs() {
  local limit
  limit=$(cat $instances) || return 1
  [ "$limit" -lt $enough ] || return 0
  echo $enough 2>/dev/null >$instances || return 1
  formerly=$limit
}

[ "$(id -u)" = 0 ] || echo "not root: tests that need root, such as those of the kernel and the demo, will skip with a reason"

if [ "${TEST_KUBE:-1}" != 0 ]; then
  if roomForLabs; then
    rows[-1]+=" kube-programs test-cni"
    rows+=("test-kube | test-ops")
  else
    rows[-1]+=" | kube-programs"
    rows+=("test-kube test-ops test-cni")
  fi
  echo "the first run also builds Kubernetes, for a quarter of an hour; TEST_KUBE=0 skips the tests on real Kubernetes"
else
  test/setup/skip.sh test-kube "TEST_KUBE=0 skips the tests on real Kubernetes: make test-kube, make test-ops and make test-cni run them" | tee "$work/kube.log"
fi
echo "a step's output is shown when it ends, and until then is in $work/STEP.log"
read -ra steps <<<"${rows[*]//|/}"
for row in "${rows[@]}"; do
  IFS='|' read -ra lanes <<<"$row"
  together "${lanes[@]}"
  [ ${#failed[@]} = 0 ] || break
done

finish
[ ${#failed[@]} = 0 ] && exit 0
for step in "${failed[@]}"; do echo "make test: FAILED in $step; run it alone with: make $step"; done
exit 1
