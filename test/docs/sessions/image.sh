# Without a builder a build is held against the Dockerfile: its arguments are some that it asks for, and what it builds from is here.
cd "$CHECKOUT"
docker() {
  local argument asked unknown=0
  [ "$1 $2" = 'buildx build' ] && [ -f "${!#}/Dockerfile" ] || return 1
  for argument in $(printf '%s\n' "$@" | sed -n 's/^\([A-Z_]*\)=.*/\1/p'); do
    asked=$((${asked:-0} + 1))
    grep -q "^ARG $argument\b" Dockerfile || unknown=1
  done
  [ "${asked:-0}" -gt 1 ] && [ $unknown = 0 ]
}
