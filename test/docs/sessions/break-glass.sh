# A verifier whose bundle nothing keeps fresh: it starts with the key that the first block makes, closes, and opens with the statement of the second.
own_machine
command proofgate keygen --out signer.pem --public-out /etc/proofgate/signer.jwk.json
sed -e 's/freshness_class: bounded/freshness_class: realtime/' -e '/max_staleness_seconds/d' "$CHECKOUT/bundles/minimal.yaml" >bundle.yaml
command proofgate bundle sign bundle.yaml --key signer.pem --out /etc/proofgate/bundle

readiness() { curl --silent --max-time 2 http://127.0.0.1:9192/readyz; }
closed() { readiness | grep 'more than any route allows'; }
opened() { answers 9192 && readiness | grep 'a break-glass statement suspends'; }
proofgate() {
  command proofgate "$@" || return
  case $1 in
    keygen)
      command proofgate verifier --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key /etc/proofgate/signer.jwk.json \
        --state-dir /var/lib/proofgate --replay memory --realtime-staleness 1s --log-level silent \
        --break-glass-key break-glass.jwk.json --break-glass-file /etc/proofgate/break-glass.jws &
      until_ok closed ;;
    bundle) cp break-glass.jws /etc/proofgate/break-glass.jws && until_ok opened ;;
  esac
}
