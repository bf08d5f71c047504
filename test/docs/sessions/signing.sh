# A caller with a key of its own before a gateway: the site is a file that was signed here, the key and its profile are those of docs/operate/cli.md.
own_machine; certificates
command proofgate keygen --out signer.pem --public-out /etc/proofgate/signer.jwk.json
command proofgate keygen --out key.pem --public-out key.jwk.json
source() { echo "{ route_id: $1, allowed_sources: [{ issuer: \"https://control.shop.example/sites/shop-eu-1\", trust_domain: shop.example, subject_exact: \"client:billing\", required_key_binding: software }] }"; }
cat >bundle.yaml <<END
format: proofgate.bundle/v1
auth_site: shop-eu-1
origins: [ "https://api.shop.example" ]
single_verifier: true
clients:
  - client_id: billing
    issuer: https://control.shop.example/sites/shop-eu-1
    trust_domain: shop.example
    subject: client:billing
    grants: [ { resource: orders, access: write } ]
derived_keys:
  - key_id: dk_7f3c
    client_id: billing
    jwk: { kty: OKP, crv: Ed25519, x: $(node -p 'JSON.parse(fs.readFileSync("key.jwk.json")).x') }
    status: active
    expires_at: "$(date --utc --date '1 hour' +%FT%TZ)"
routes:
  - { route_id: orders-read, method: GET, path_template: "/v1/orders/{order_id}", audience: "https://api.shop.example", freshness_class: bounded, max_staleness_seconds: 300, resource: orders }
  - { route_id: orders-write, method: POST, path_template: /v1/orders, audience: "https://api.shop.example", freshness_class: bounded, max_staleness_seconds: 300, resource: orders, signed_headers: [content-type] }
  - { route_id: orders-create, method: PUT, path_template: /v1/refunds, audience: "https://api.shop.example", freshness_class: bounded, max_staleness_seconds: 300, resource: refunds }
route_sources: [ $(source orders-read), $(source orders-write), $(source orders-create) ]
END
command proofgate bundle sign bundle.yaml --key signer.pem --out /etc/proofgate/bundle
# It keeps what it loaded in its state directory because it would follow Control, were there one.
echo pgt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA >token && chmod 600 token
command proofgate verifier --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key /etc/proofgate/signer.jwk.json \
  --control-url http://127.0.0.1:9 --control-token-file token --state-dir /var/lib/proofgate --replay memory \
  --listen unix:/run/proofgate/verifier.sock --audit required --audit-file /var/log/proofgate/decisions.jsonl --log-level silent &
gateway
until_ok answers 9192
echo '{"item":"book"}' >order.json

# Signs one request and sends another: `sent SIGNED-METHOD SIGNED-URL URL [curl's arguments]`. What came back is left to be looked at.
sent() {
  local method=$1 signed=$2 url=$3
  shift 3
  command proofgate sign "$method" "$signed" --key key.pem --profile-file others.yaml --out sent.txt "${sign[@]}" >>"$SESSION/signed"
  curl --silent --include --http1.1 --globoff --path-as-is --request "$method" -H @sent.txt "$url" "$@"
}
sign=()
sed 's/^profiles:/&\n  - { route_id: orders-create, method: PUT, path_template: \/v1\/refunds, audience: "https:\/\/api.shop.example", origins: ["https:\/\/api.shop.example"] }/' profile.yaml >others.yaml

# A denial, as the caller gets it.
denied() { sent PUT https://api.shop.example/v1/refunds https://api.shop.example/v1/refunds; }

# docs/operate/explain.md has the capture's members: what they hold is filled in from the request that was sent last, and its audit event.
captured() {
  tail -n 1 /var/log/proofgate/decisions.jsonl >event.json
  node -e '
    const [file, method, path, body] = process.argv.slice(1);
    const real = { event: JSON.parse(fs.readFileSync("event.json")), method, scheme: "https", authority: "api.shop.example", path,
      headers: [...fs.readFileSync("sent.txt", "utf8").trim().split("\n"), ...(body ? ["content-type: application/json"] : [])],
      body_base64: Buffer.from(body ?? "").toString("base64") };
    const members = Object.keys(JSON.parse(fs.readFileSync("capture-as-documented.json")));
    fs.writeFileSync(file, JSON.stringify(Object.fromEntries(members.map((name) => [name, real[name]]))));' "$@"
}
explain_tampered() {
  sent GET https://api.shop.example/v1/orders/77 https://api.shop.example/v1/orders/78 >>"$SESSION/sent"
  captured tampered.json GET /v1/orders/78
  command proofgate explain --bundle /etc/proofgate/bundle --bundle-key /etc/proofgate/signer.jwk.json --request tampered.json
}
# A request that was allowed, for the lines of docs/operate/explain.md; the second reads it from standard input.
capture_allowed() {
  sign=(--header 'content-type: application/json' --body-file order.json)
  sent POST https://api.shop.example/v1/orders https://api.shop.example/v1/orders \
    -H 'content-type: application/json' --data-binary @order.json >>"$SESSION/sent"
  sign=()
  captured capture.json POST /v1/orders "$(cat order.json)"$'\n'
  exec <capture.json
}
