# Sourced by the scripts that install big tools: keeps each set of tools below ${XDG_CACHE_HOME:-~/.cache}/proofgate/NAME/HASH, where
# every checkout finds it, and links .cache/NAME of this checkout to it, or the path that is given.
# A set is built in a temporary folder and renamed when it is complete, so two checkouts may install at the same time.

tool_cache_folder=${XDG_CACHE_HOME:-$HOME/.cache}/proofgate

# Usage: link_tools NAME HASH [LINK]; fails, and leaves no link to another set, when that set is not installed.
link_tools() {
  local kept=$tool_cache_folder/$1/$2 link=${3:-$root/.cache/$1}
  [ -f "$kept/installed" ] && [ "$(readlink "$link" || true)" = "$kept" ] && return 0
  rm -rf "$link"
  [ -f "$kept/installed" ] || return 1
  mkdir -p "$(dirname "$link")"
  ln -sfn "$kept" "$link"
}

# Usage: unfinished_tools NAME; prints a new folder to build in.
unfinished_tools() {
  mkdir -p "$tool_cache_folder/$1"
  # What an install that was killed left behind.
  find "$tool_cache_folder/$1" -maxdepth 1 -name 'unfinished-*' -mmin +600 -exec rm -rf {} +
  mktemp -d "$tool_cache_folder/$1/unfinished-XXXXXX"
}

# Usage: keep_tools NAME HASH FOLDER [LINK]; the first of two that finish at the same time is kept.
keep_tools() {
  echo "$2" >"$3/installed"
  chmod 755 "$3"
  mv -T "$3" "$tool_cache_folder/$1/$2" 2>/dev/null || rm -rf "$3"
  link_tools "$1" "$2" ${4:+"$4"}
}
