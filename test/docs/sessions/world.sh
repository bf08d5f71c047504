# What the sessions of sessions.ts find around the lines that they paste: functions, in a shell that has loopback, folders, hosts and
# processes of its own (run-session.ts). Every program is the real one.
ip link set lo up
until_ok() { for _ in $(seq 600); do "$@" >>"$SESSION/waits" 2>&1 && return; sleep 0.1; done; echo "never: $*" >&2; return 1; }
answers() { curl --silent --fail --max-time 2 "http://127.0.0.1:$1/readyz"; }

# The folders that the documents name, empty, and the machine's own /etc with their hosts in it.
own_machine() {
  local folder
  for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$folder"; done
  mkdir "$SESSION/etc" && cp -a /etc/. "$SESSION/etc" && mount --bind "$SESSION/etc" /etc
  mkdir -p /etc/proofgate/tokens /run/proofgate /run/secrets/proofgate /run/secrets/kubernetes.io/serviceaccount /var/lib/proofgate /var/log/proofgate
  chmod 700 /run/proofgate
  printf '%s\n' '127.0.0.1 localhost control.shop.example control.example' '127.0.0.2 api.shop.example' >/etc/hosts
  export PATH=$CHECKOUT/bin:$PATH
}

# One CA, and one certificate for every host; the programs trust it as they trust the system's.
certificates() {
  {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout tls.key -out tls.csr
    openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out tls.crt -extfile <(
      echo subjectAltName=DNS:localhost,DNS:control.shop.example,DNS:control.example,DNS:api.shop.example,DNS:broker.shop.example,IP:127.0.0.1)
  } 2>>"$SESSION/openssl"
  export NODE_EXTRA_CA_CERTS=$PWD/ca.crt CURL_CA_BUNDLE=$PWD/ca.crt
}

# Starts a server, waits until it is ready, runs `meanwhile`, and stops it with SIGTERM.
proofgate() {
  case " $* " in
    *' verifier '*) served 9192 "$@" ;;
    *' control '*) served 9194 "$@" ;;
    *' agent '*) served 9195 "$@" ;;
    *' --every '*) served - "$@" ;;
    *) command proofgate "$@" ;;
  esac
}
meanwhile() { :; }
served() {
  local port=$1 pid
  shift
  command proofgate "$@" >"$SESSION/served" 2>>"$SESSION/served.log" &
  pid=$!
  if [ "$port" = - ]; then until_ok test -s "$SESSION/served"; else until_ok answers "$port"; fi && meanwhile "$@"
  local status=$?
  kill -TERM $pid && wait $pid && return $status
}

redis() { redis-server --port 6379 --save '' --appendonly no >>"$SESSION/redis" & until_ok redis-cli ping; }

# A cluster's token issuer, and tokens of two service accounts: cluster/url, cluster/ca.pem, cluster/billing.token.
cluster() {
  node "$CHECKOUT/.build/demo/issuer.js" cluster proofgate-shop-eu-1 >>"$SESSION/issuer" &
  until_ok test -f cluster/url
}

# An OpenID provider where ada may sign in, and on request PostgreSQL: files oidc-issuer, oidc-secret, database-url.
parties() { node "$CHECKOUT/test/docs/sessions/parties.mjs" "$@" & until_ok test -f parties-ready; }

# An API behind the shipped Envoy, at https://api.shop.example: what is in front ends the TLS.
gateway() {
  node -e 'http.createServer((q, r) => q.resume().on("end", () => r.end("{\"order\":7}\n"))).listen(8081, "127.0.0.1")' &
  node "$CHECKOUT/test/docs/sessions/tls-front.mjs" 127.0.0.2:443 tls.crt tls.key 127.0.0.1:10000 &
  # A machine that is busy testing may take longer than half a second.
  sed -e 's/scheme_to_overwrite: http /scheme_to_overwrite: https /' -e 's/timeout: 0.5s/timeout: 8s/' "$CHECKOUT/envoy/envoy.yaml" >envoy.yaml
  "$CHECKOUT"/.venv/envoy-1.40.0/lib/python3*/site-packages/envoy/_bin/envoy -c envoy.yaml --log-level error --concurrency 1 >>"$SESSION/envoy" 2>&1 &
  until_ok curl --silent --fail http://127.0.0.1:9901/ready
}

# Every file and link below a folder, with where links lead.
list() { (cd "$1" && find . -printf '%P -> %l\n'); }
