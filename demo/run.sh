#!/usr/bin/env bash
# Starts all of Trawl in one process, indexes a Git repository and searches it.
#
#   demo/run.sh BINARY demo|run|short [REPO]
#
# demo stops when it is done, run stays up, short uses a small repository made
# on the spot. REPO is a path or URL; without it the source tree of the Go
# toolchain is made into a Git repository in the user's cache folder, once.
set -euo pipefail
command -v git > /dev/null || { echo "the demo needs git" >&2; exit 1; }

trawl=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mode=$2
repo=${3:-}

if [ "$(uname)" = Darwin ]; then cache=$HOME/Library/Caches/trawl; else cache=${XDG_CACHE_HOME:-$HOME/.cache}/trawl; fi
work=$(mktemp -d "${TMPDIR:-/tmp}/trawl-demo.XXXXXX")
up=

finish() {
	status=$?
	trap - EXIT INT TERM
	if [ -n "$up" ] && kill -0 "$up" 2>/dev/null; then
		kill "$up" && wait "$up" || true
	fi
	if [ $status -ne 0 ] && [ -s "$work/log" ]; then
		echo "The last lines of the log:" >&2
		tail -20 "$work/log" >&2
	fi
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
shows() { # prints a command as a user would type it, and runs it
	local words= word
	for word in "$@"; do
		case $word in *[!A-Za-z0-9_./:=@-]*) word="'$word'" ;; esac
		words="$words $word"
	done
	say "\$ trawl$words"
	"$trawl" "$@"
}

# git without the user's settings: what is committed must not depend on them.
plain_git() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -c user.name=Trawl -c user.email=demo@trawl.invalid \
		-c core.autocrlf=false -c gc.auto=0 -c core.looseCompression=1 -c init.defaultBranch=main "$@"
}

# commit_tree FOLDER GIT_DIR makes a bare repository of a folder that stays untouched.
commit_tree() {
	rm -rf "$2.new"
	plain_git init -q --bare "$2.new"
	plain_git --git-dir="$2.new" --work-tree="$1" add -A -f .
	plain_git --git-dir="$2.new" --work-tree="$1" commit -q -m "$3"
	rm -rf "$2" && mv "$2.new" "$2"
}

small_repository() {
	mkdir -p "$work/tree/docs"
	printf 'package pond\n\n// Catch returns the fish of one haul.\nfunc Catch(net Net) []Fish { return net.Haul() }\n' >"$work/tree/pond.go"
	printf 'package pond\n\ntype Fish struct{ Name string }\n' >"$work/tree/fish.go"
	printf '# Pond\n\nHow to catch fish.\n' >"$work/tree/docs/README.md"
	commit_tree "$work/tree" "$work/pond.git" "A pond"
	repo=$work/pond.git
}

go_repository() {
	local go_version
	go_version=$(go env GOVERSION)
	repo=$cache/demo/$go_version.git
	name=(--name "$go_version")
	if [ ! -d "$repo" ]; then
		say "Making a Git repository of the source tree of $go_version in $repo (once)"
		mkdir -p "$cache/demo"
		commit_tree "$(go env GOROOT)/src" "$repo" "$go_version"
	fi
}

queries=()
name=() # what the repository is called; from its path or URL where empty
case $mode:$repo in
short:*) small_repository ;;
*:)
	go_repository
	queries=('"func NewReader" lang:go' 'f:^net/http/ case:yes Hijacker -f:_test\.go$' 'sync\.(RW)?Mutex\s+// lang:go' 'KELVIN or TODO\(adg\)' 'c:unsafe f:\.s$')
	;;
esac
[ "$mode" = short ] && queries=('catch fish' 'f:\.go$ Fish -Haul')
[ ${#queries[@]} -gt 0 ] || queries=('TODO' 'return' '[Ee]rror\w* ' 'f:README' 'main or init')

if [ "$mode" = run ]; then
	data=$cache/run
	address=() # the standard ones
else
	data=$work/data
	address=(--grpc 127.0.0.1:0 --http 127.0.0.1:0)
fi

say "\$ trawl up --data-dir $data"
"$trawl" up --data-dir "$data" ${address[@]+"${address[@]}"} >"$work/ready" 2>"$work/log" &
up=$!
until grep -qs '^ready' "$work/ready"; do # the file may not be there yet
	kill -0 "$up" 2>/dev/null || { echo "trawl up has ended" >&2; exit 1; }
	sleep 0.1
done
cat "$work/ready"
TRAWL_ADDR=$(sed -n 's/.* gRPC \([^ ,]*\).*/\1/p' "$work/ready")
export TRAWL_ADDR

shows index ${name[@]+"${name[@]}"} "$repo"
shows repos
for q in "${queries[@]}"; do
	shows search --heading --max-files 3 "$q" || [ $? -eq 1 ] # 1: nothing was found
done
if [ "$mode" = short ]; then
	"$trawl" search --json 'catch fish' | grep '"path":"pond.go"' >/dev/null || { echo "pond.go was not found" >&2; exit 1; }
fi

if [ "$mode" = run ]; then
	trap 'exit 0' INT TERM
	say "Trawl is up. Try: $1 search 'your query'. Ctrl-C stops it."
	wait "$up"
fi
say "Done."
