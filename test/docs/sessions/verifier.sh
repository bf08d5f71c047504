# A bundle that two have signed, a Redis, and certificates for the gateway's port.
own_machine; certificates; redis
for name in signer-a signer-b freshness; do command proofgate keygen --out $name.pem --public-out "/etc/proofgate/$name.jwk.json"; done
cp /etc/proofgate/signer-a.jwk.json /etc/proofgate/signer.jwk.json
sed s/^single_verifier:.*// "$CHECKOUT/bundles/minimal.yaml" >bundle.yaml
command proofgate bundle sign bundle.yaml --key signer-a.pem --key signer-b.pem --out /etc/proofgate/bundle
command proofgate bundle freshen /etc/proofgate/bundle --key signer-a.pem --bundle-key /etc/proofgate/signer.jwk.json
mkdir tls ca && cp tls.crt tls.key tls && cp ca.crt ca
# Where the configuration file leaves it, as docs/operate/cli.md says below it.
export PROOFGATE_REPLAY=redis://127.0.0.1:6379

not_ready() {
  redis-cli shutdown nosave 2>>"$SESSION/redis"
  command proofgate verifier --config verifier.yaml --freshness-key /etc/proofgate/signer.jwk.json --log-level silent &
  until_ok curl --silent http://127.0.0.1:9192/readyz
  curl --silent http://127.0.0.1:9192/readyz
}
