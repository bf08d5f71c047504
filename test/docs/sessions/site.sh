# A site that Control holds, as bundles/site.yaml declares it, for a cluster that is here; its verifier and its gateway.
own_machine; certificates; redis; cluster; parties
mkdir control pins bin
command proofgate control --data-dir control --log-level warn --listen 127.0.0.1:443 --tls-cert tls.crt --tls-key tls.key \
  --public-url https://control.shop.example --public-url https://control.example \
  --allow-issuer-network 127.0.0.1/32 --issuer-ca-file cluster/ca.pem --oidc-issuer "$(cat oidc-issuer)" \
  --oidc-client-id proofgate-control --oidc-client-secret-file oidc-secret --oidc-groups-claim groups --oidc-ca-file ca.crt &
until_ok answers 9194
cp control/bootstrap-token .
issuer=$(cat cluster/url)
sed -e "s#https://oidc.eu-1.clusters.example/id/4f2a#$issuer#" -e "s#oidc.eu-1.clusters.example/id/4f2a#${issuer#https://}#" \
  -e 's/gateway-1, gateway-2/gateway-1/' -e 's/skew_seconds: 5/skew_seconds: 1/' "$CHECKOUT/bundles/site.yaml" >site.yaml
export PROOFGATE_CONTROL_URL=https://control.shop.example
operator() { PROOFGATE_TOKEN_FILE=control/bootstrap-token command proofgate ctl "$@"; }
operator apply -f site.yaml --token-dir /etc/proofgate/tokens
operator signing-keys --site shop-eu-1 --out-dir pins
policy=$(operator get policies --site shop-eu-1 --output json | node -p 'JSON.parse(fs.readFileSync(0)).items.find(({ display_name }) => display_name.startsWith("billing")).reference')
cp cluster/billing.token /run/secrets/kubernetes.io/serviceaccount/token
cp cluster/billing.token /run/secrets/proofgate/token

command proofgate verifier --auth-site shop-eu-1 --control-url "$PROOFGATE_CONTROL_URL" --control-token-file /etc/proofgate/tokens/gateway-1.token \
  --bundle-key pins/bundle-1.jwk.json --freshness-key pins/freshness-1.jwk.json --state-dir /var/lib/proofgate \
  --replay redis://127.0.0.1:6379 --listen unix:/run/proofgate/verifier.sock --audit-file decisions.jsonl --log-level silent &
gateway
until_ok answers 9192

# The browser that `ctl login` opens.
printf '#!/bin/sh\nexec node "%s" "$1" >>"%s" 2>&1\n' "$CHECKOUT/test/docs/sessions/sign-in.mjs" "$SESSION/browser" >bin/xdg-open
chmod +x bin/xdg-open
export PATH=$PWD/bin:$PATH DISPLAY=:0 XDG_CONFIG_HOME=$PWD/config
# What the agent keeps, while it runs; it made a pair anew once its token changed.
meanwhile() {
  [ "$1" = agent ] || return 0
  list /run/proofgate >"$SESSION/agent-files"
}
