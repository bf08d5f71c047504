# Without a cluster an installation is what it would install, held against the schemas of Kubernetes; other command lines are ones that the program takes.
schemas=$CHECKOUT/.cache/helm/schemas
fits() {
  "$CHECKOUT/.cache/helm/bin/kubeconform" -strict -n 1 \
    -schema-location "$schemas/kubernetes/1.36.0/{{.ResourceKind}}{{.KindSuffix}}.json" \
    -schema-location "$schemas/custom-resources/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json" "$@"
}
helm() {
  local verb=$1
  shift
  case $verb in
    install | upgrade) "$CHECKOUT/.cache/helm/bin/helm" template "${@/#--install/--create-namespace}" | tee objects.yaml && fits objects.yaml ;;
    *) "$CHECKOUT/.cache/helm/bin/helm" "$verb" "$@" --help ;;
  esac
}
# `kubectl apply -f FILE…`, or `-` for standard input. What makes objects from arguments needs the program itself.
kubectl() {
  case " $* " in
    *' apply '*) local files; mapfile -t files < <(printf '%s\n' "$@" | sed -n '/^-f$/{n;p}') && fits "${files[@]}" ;;
    *' create '*) command kubectl "$@" --dry-run=client --output yaml | fits - ;;
    *) command kubectl "$@" --help ;;
  esac
}
