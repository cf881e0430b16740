#!/usr/bin/env bash
# Prints what is known of the source in this folder: of git's checkout, or of a tarball that `git archive`
# made, which filled in source.txt. Prints nothing for what is not known.
#
#   install/release/source.sh version             the tag and what came after it: v0.1.0-3-g1a2b3c4-dirty
#   install/release/source.sh revision            the commit, with -dirty if files were changed
#   install/release/source.sh time                when it was committed, in Unix time
#   install/release/source.sh previous VERSION    the tag of the release before VERSION; previews count for previews only
#   install/release/source.sh subjects VERSION    the subjects of the commits since then
set -eu -o pipefail
cd "$(dirname "$0")/../.."

previous() {
  local final=()
  [[ $1 == *-* ]] || final=(--exclude '*-*')
  # HEAD itself can be tagged already.
  git describe --tags --abbrev=0 --match 'v*' "${final[@]}" HEAD^
}

fromGit() {
  case $1 in
    version) git describe --tags --always --dirty ;;
    revision) git rev-parse HEAD | sed "$(git diff --quiet HEAD || echo 's/$/-dirty/')" ;;
    time) git log -1 --format=%ct ;;
    previous) previous "$2" ;;
    subjects) git log --format=%s "$(previous "$2" | sed 's/$/../')HEAD" ;;
  esac
}

# git refuses to work in another user's checkout: then, too, nothing is known.
if [ -e .git ]; then
  fromGit "$@" 2>/dev/null || true
else
  sed -n "s/^$1 \([^\$%].*\)/\1/p" install/release/source.txt
fi
