/**
 * The shells that the documents' lines are pasted into, one session each: what is there before, what of the text stands for something
 * of the reader's own, what must come of it. Lines are pasted as they stand, but for `reads`. Functions are of world.sh.
 */

export type SessionName =
  | 'make'
  | 'demo'
  | 'with-control'
  | 'without-control'
  | 'bundles'
  | 'signing'
  | 'verifier'
  | 'control'
  | 'site'
  | 'gateway'
  | 'cluster'
  | 'image'
  | 'release';

export interface Session {
  /** In which order documents are pasted; default: as in the table of claims. */
  readonly documents?: readonly string[];
  /** Runs first, in a folder of the session's own. */
  readonly before: string;
  /** Runs before a document's first line. */
  readonly beforeDocument?: { readonly [file: string]: string };
  /** Text of its blocks that stands for something else, and what that is here. Each must occur. */
  readonly reads?: readonly (readonly [text: string, here: string])[];
  /** Commands that end as the document says they do, which is not with 0: the exit code and how the command begins. */
  readonly ends?: readonly string[];
  /** What its blocks say, all of them together, in this order. */
  readonly says?: readonly RegExp[];
  /** What is shown, and a world as small as this one has not. Each must occur. */
  readonly absent?: readonly string[];
  /** Lines of the test's own, after the last block: they end with 0. */
  readonly after?: string;
  /** Files of the checkout without which it skips. */
  readonly needs?: readonly string[];
}

/** What these lines build is built already: make prints what it would do, and fails for an unknown target. */
const IN_CHECKOUT = 'unset -f proofgate; cd "$CHECKOUT"; export MAKEFLAGS=n';

/** A machine that is busy testing takes longer to start programs, and more than half a second to answer. */
const PATIENCE = [
  ['--retry 30 ', '--retry 300 '],
  ['sed "s#', 'sed "s#timeout: 0.5s#timeout: 8s#;s#'],
] as const;

export const SESSIONS: { readonly [name in SessionName]: Session } = {
  make: { before: IN_CHECKOUT, says: [/node \.build\/demo\/main\.js/, /jest/, /^\d+\.\d+\.\d+$/m] },
  demo: { before: 'cd "$CHECKOUT"' },
  'with-control': {
    before: IN_CHECKOUT,
    reads: PATIENCE,
    ends: ['3 proofgate request GET http://api.shop.example/v1/orders/7'],
    says: [/^activate source cluster$/m, /^\{"order":7\}$/m, /key_revoked/, /revoked/],
  },
  'without-control': {
    before: IN_CHECKOUT,
    reads: PATIENCE,
    says: [
      /^warning origin_/m,
      /^\{"order":7\}$/m,
      /^HTTP\/1\.1 200 /m,
      /^HTTP\/1\.1 403 /m,
      /^x-proofgate-reason: jti_replay/m,
      /"event":"proofgate.decision"/,
    ],
  },
  bundles: {
    before:
      'own_machine; cp "$CHECKOUT/bundles/minimal.yaml" bundle.yaml; touch /var/lib/proofgate/high-water-mark.json',
  },
  signing: {
    documents: ['docs/cli.md', 'docs/explain.md'],
    before: '. "$CHECKOUT/test/docs/sessions/signing.sh"',
    beforeDocument: { 'docs/explain.md': 'capture_allowed' },
    says: [/"order":7/, /"order":7/, /^ALLOWED/m, /"outcome":"allowed"/],
  },
  verifier: {
    before: '. "$CHECKOUT/test/docs/sessions/verifier.sh"',
    reads: [
      [
        'verifier …',
        'verifier --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key /etc/proofgate/signer.jwk.json --state-dir /var/lib/proofgate',
      ],
    ],
  },
  control: {
    before: 'own_machine; certificates; parties postgres',
    reads: [['https://idp.shop.example', '"$(cat oidc-issuer)"']],
  },
  site: {
    // A bundle keeps up to a thousand keys in itself.
    absent: ['keys-0001.jsonl'],
    documents: ['docs/control.md', 'docs/ctl.md', 'README.md', 'docs/cli.md'],
    before: '. "$CHECKOUT/test/docs/sessions/site.sh"',
    reads: [
      ['epr_7f3c9a', '"$policy"'],
      ["'issuer=https://oidc.example/id/4F2A'", '"issuer=$issuer"'],
    ],
    says: [/"principal":"group:platform"/, /"token":"pga_/, /group:platform|Ada/, /"order":7/],
  },
  gateway: {
    before: '. "$CHECKOUT/test/docs/sessions/gateway.sh"',
    says: [/"findings":\[\]/],
    after: 'excepted',
  },
  cluster: {
    needs: ['.cache/helm/installed', '.cache/kubernetes/bin/kubectl'],
    before: 'ln -s "$CHECKOUT/helm" "$CHECKOUT/envoy" .; . "$CHECKOUT/test/docs/sessions/cluster.sh"',
    beforeDocument: {
      'docs/gateways.md':
        'namespaces istio-ingress gateway prod; for name in envoy api; do cp tls.crt $name.crt && cp tls.key $name.key; done; sidecars istio-ingress gateway; first_request',
      'helm/proofgate/README.md':
        'without_releases; mkdir -p tokens pins; echo token >tokens/gateway.token; echo {} >pins/bundle-1.jwk.json',
    },
    says: [
      /^authorizationpolicy.security.istio.io\/proofgate created$/m,
      /^securitypolicy.gateway.envoyproxy.io\/proofgate created$/m,
      /^envoyproxy.gateway.envoyproxy.io\/proofgate patched$/m,
      /^job.batch "first-request" deleted/m,
      /^job.batch\/first-request created$/m,
      /^STATUS: deployed$/m,
      /deployment "proofgate-verifier" successfully rolled out/,
      /^TEST SUITE: +proofgate-test\nLast .*\n.*\nPhase: +Succeeded$/m,
      /^HTTP\/1\.1 200$/m,
      /^pod "proofgate-test" deleted/m,
    ],
    after: 'without_releases && every_installation',
  },
  image: { before: '. "$CHECKOUT/test/docs/sessions/image.sh"' },
  release: {
    needs: ['.cache/helm/installed'],
    before: '. "$CHECKOUT/test/docs/sessions/release.sh"',
    reads: [
      ['VERSION', '$version'],
      ['bin/proofgate --version', 'bin/proofgate --version; cd "$released"'],
      ['openssl pkeyutl', 'cd .build/release && openssl pkeyutl'],
      ['-inkey release-key.pub.pem', '-inkey ../../release-key.pub.pem'],
    ],
    says: [/^\d+\.\d+\.\d+$/m, /success/i, /^proofgate-.*\.tgz: OK$/m],
  },
};
