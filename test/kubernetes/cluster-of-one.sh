# What docs/tutorials/kubernetes.md finds in a cluster and is not in one that is an API server alone: no node runs a container, nothing deletes what
# is in a namespace, no builder builds the image. All other commands are the real ones.
kubectl() {
  local command=$CHECKOUT/.cache/kubernetes/bin/kubectl
  case " $* " in
    # Ports of pods are on this machine already: that the program takes the line is all there is to see.
    *' port-forward '*) "$command" "$@" --help >>help ;;
    # On this machine, in the folder that has the pod's volumes: the file `control-root` names it.
    *' exec '*)
      while [ "$1" != -- ]; do shift; done
      shift
      "${@//\/var\/lib\//$(cat control-root)/var/lib/}"
      ;;
    *' delete namespace '*) "$command" "$@" --wait=false ;;
    *) "$command" "$@" ;;
  esac
}
helm() { "$CHECKOUT/.cache/helm/bin/helm" "$@"; }
docker() { printf '%s\n' "$@" >docker-arguments; }
make() { command make --just-print --directory "$CHECKOUT" "$@"; }
