#!/usr/bin/env bash
# Copies the Go modules of a list into a folder, each as a folder of its own.
set -euo pipefail
to=${1:?usage: modules.sh FOLDER [LIST]}
here=$(cd "$(dirname "$0")" && pwd)
list=${2:-$here/modules.txt}
mkdir -p "$to"
while read -r module; do
	# Outside of any module, so that it changes no go.mod.
	from=$(cd / && go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	cp -R "$from" "$to/${module//\//+}"
	chmod -R u+w "$to/${module//\//+}"
done < "$list"
