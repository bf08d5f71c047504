# There is no container engine. The build's arguments are checked instead: the Dockerfile's ARGs, its base, the processors of lay-out.mjs and
# the options of BuildKit's exporter. The Dockerfile's steps are run by test/image.
cd "$CHECKOUT"
refused() { echo "docker: $*" >&2; return 1; }
build_argument() {
  grep -q "^ARG ${1%%=*}\b" Dockerfile || refused "the Dockerfile has no argument $1" || return
  case $1 in
    NODE_IMAGE=*) [[ $1 =~ ^$(sed -n 's/^ARG \(NODE_IMAGE=.*\)/\1/p' Dockerfile)@sha256:[0-9a-f]{64}$ ]] || refused "another base: $1" ;;
    SOURCE_DATE_EPOCH=*) [[ ${1#*=} =~ ^[0-9]{10}$ ]] || refused "no time: $1" ;;
  esac
}
docker() {
  [ "$1 $2" = 'buildx build' ] || refused "$1 $2 has no check" || return
  shift 2
  local one given=' ' known
  known=$(sed -n 's/^ \* Usage: lay-out.mjs \(\S*\) .*/\1/p' scripts/image/lay-out.mjs)
  while [ $# -gt 1 ]; do
    given+="$1 "
    case $1 in
      --platform) for one in ${2//,/ }; do [[ "|$known|" == *"|${one#linux/}|"* ]] || refused "platform $one" || return; done ;;
      --build-arg) build_argument "$2" || return ;;
      --output) for one in ${2//,/ }; do [[ $one =~ ^(type=(oci|docker|registry|image)|(dest|name)=.+|(push|rewrite-timestamp)=(true|false))$ ]] || refused "output $one" || return; done ;;
      --tag | -t) [[ $2 =~ ^[a-z0-9./:-]+/proofgate(:[A-Za-z0-9._-]+)?$ ]] || refused "name $2" || return ;;
      --push | --load | --provenance=* | --sbom=*) shift && continue ;;
      *) refused "flag $1" || return ;;
    esac
    shift 2
  done
  [[ $given == *' --build-arg '* && -f ${1:-nowhere}/Dockerfile ]] || refused "no Dockerfile in ${1:-nowhere}"
}
