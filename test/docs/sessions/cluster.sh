# A real kube-apiserver over a real etcd, as test/kubernetes has it, with the custom resources that manifests name, for helm and kubectl
# as they stand. No controllers and no kubelet: cluster-hands.mjs says what they would say of what the lines wait for.
# Not run: kubectl lines that reach into a container (their flags and object are checked), and helm lines that reach a registry (their
# flags are checked).
kubernetes=$CHECKOUT/.cache/kubernetes
export PATH=$kubernetes/bin:$CHECKOUT/.cache/helm/bin:$PATH KUBECONFIG=$SESSION/home/kubeconfig
certificates
openssl genrsa -out tokens.key 2048 2>>"$SESSION/openssl" && openssl rsa -in tokens.key -pubout -out tokens.pub 2>>"$SESSION/openssl"
echo 'administrator,administrator,1,system:masters' >tokens.csv

etcd --data-dir "$SESSION/etcd" --log-level error --unsafe-no-fsync &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port=6443 \
  --tls-cert-file=tls.crt --tls-private-key-file=tls.key --token-auth-file=tokens.csv --authorization-mode=RBAC \
  --service-account-issuer=https://127.0.0.1:6443 --service-account-jwks-uri=https://127.0.0.1:6443/openid/v1/jwks \
  --service-account-signing-key-file=tokens.key --service-account-key-file=tokens.pub --service-cluster-ip-range=10.96.0.0/16 \
  --endpoint-reconciler-type=none --disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount >>"$SESSION/apiserver" 2>&1 &
(umask 077 && command kubectl config set-cluster docs --server=https://127.0.0.1:6443 --certificate-authority=ca.crt --embed-certs &&
  command kubectl config set-credentials docs --token=administrator && command kubectl config set-context docs --cluster=docs --user=docs &&
  command kubectl config use-context docs) >>"$SESSION/kubeconfig"
until_ok command kubectl get --raw /readyz
find "$kubernetes/custom-resources" -name '*.yaml' -exec grep -lZ '^kind: CustomResourceDefinition' {} + |
  xargs -0 awk 'FNR == 1 { print "---" } 1' >definitions.yaml
command kubectl create -f definitions.yaml >>"$SESSION/definitions"
command kubectl wait --for=condition=Established --all customresourcedefinitions --timeout=5m >>"$SESSION/definitions"
node "$CHECKOUT/test/docs/sessions/cluster-hands.mjs" https://127.0.0.1:6443 administrator >>"$SESSION/hands" 2>&1 &

# Namespaces that manifests are for, which the charts of their gateways make.
namespaces() { local name; for name in "$@"; do command kubectl get namespace "$name" >>"$SESSION/namespaces" 2>&1 || command kubectl create namespace "$name"; done; }
# What a document before installed would have its names.
without_releases() { command helm list --all-namespaces | while read -r name namespace _; do [ "$name" = NAME ] || command helm uninstall "$name" --namespace "$namespace"; done; }

# The ConfigMap of a release with the sidecar in each of these namespaces, which a page goes on from.
sidecars() {
  local name
  for name in "$@"; do
    command helm template proofgate helm/proofgate --namespace "$name" --kube-version 1.36 --show-only templates/verifier/sidecar.yaml \
      --values "$CHECKOUT/test/helm/values/sidecar.yaml" |
      command kubectl apply --namespace "$name" --filename - >>"$SESSION/sidecars" || return
  done
}
# What docs/tutorials/kubernetes.md has made before.
first_request() {
  policy=epr_7f3c9a
  awk '/^apiVersion: batch/ { is = 1 } /^```/ { is = 0 } is' "$CHECKOUT/docs/tutorials/kubernetes.md" >first-request.yaml
  command kubectl apply --filename first-request.yaml >>"$SESSION/first-request"
}

# What an installation says to do next is done: its lines that are set off.
set_off() { sed -n '/^NOTES:/,$ s/^ \{3,\}\(kubectl .*\)$/\1/p'; }
notes() {
  local line
  while read -r line; do
    echo "\$ $line"
    eval "$line" || return
  done < <(command helm get notes "$@" | set_off)
}
helm() {
  local verb=$1 release=$2 argument namespace=default chart=''
  for argument in "$@"; do if [ -e "$argument/Chart.yaml" ]; then chart=$argument; fi; done
  [[ " $* " =~ \ (-n|--namespace)[\ =]([a-z0-9-]+)\  ]] && namespace=${BASH_REMATCH[2]}
  case $verb in
    install | upgrade)
      if [ -z "$chart" ]; then command helm "$@" --help; else command helm "$@" && notes "$release" --namespace "$namespace"; fi ;;
    repo | pull | push | registry | search) command helm "$@" --help ;;
    *) command helm "$@" ;;
  esac
}
kubectl() {
  local argument before=() object=''
  case " $* " in
    *' exec '* | *' attach '* | *' port-forward '* | *' cp '* | *' debug '*)
      for argument in "$@"; do
        [ "$argument" = -- ] && break
        before+=("$argument")
        case $argument in deployment/* | pod/* | service/* | svc/*) object=$argument ;; esac
      done
      command kubectl "${before[@]}" --help >>"$SESSION/help" || return
      [[ -z $object || ! " ${before[*]} " =~ \ (-n|--namespace)[\ =]([a-z0-9-]+)\  ]] || command kubectl get "$object" --namespace "${BASH_REMATCH[2]}" ;;
    *) command kubectl "$@" ;;
  esac
}

# Whatever values there are tests of, the lines that their notes set off are taken, each once; so is what sentences say to ask the server itself.
# test/kubernetes creates the objects of all values.
every_installation() {
  local values line
  touch "$SESSION/taken"
  for values in "$CHECKOUT"/test/helm/values/*.yaml; do
    command helm install rel helm/proofgate --namespace gateway --values "$values" --dry-run=client >"$SESSION/notes" || { echo "$values"; return 1; }
    set_off <"$SESSION/notes" | grep -vxFf "$SESSION/taken" >"$SESSION/new" || continue
    cat "$SESSION/new" >>"$SESSION/taken"
    helm install rel helm/proofgate --namespace gateway --values "$values" >"$SESSION/notes" || { cat "$SESSION/notes"; echo "$values"; return 1; }
    grep '^\$ ' "$SESSION/notes"
    command helm uninstall rel --namespace gateway >>"$SESSION/notes" || return
  done
  [ "$(wc -l <"$SESSION/taken")" -gt 2 ] || return
  grep -oh '`kubectl get --raw [^`]*`' "$CHECKOUT"/docs/*/*.md | tr -d '`' | while read -r line; do eval "$line" || return; done
}
