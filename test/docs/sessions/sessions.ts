/**
 * Defines the shell sessions that run the documented commands: their setup, replacements for placeholders, and expected
 * results. Commands run unchanged except for `reads`. world.sh defines the shell functions.
 */

export type SessionName =
  | 'make'
  | 'demo'
  | 'with-control'
  | 'rollout'
  | 'without-control'
  | 'without-gateway'
  | 'bundles'
  | 'signing'
  | 'verifier'
  | 'control'
  | 'site'
  | 'break-glass'
  | 'spiffe'
  | 'gateway'
  | 'cluster'
  | 'image'
  | 'release';

export interface Session {
  /** Order of the documents; default: as in the table of claims. */
  readonly documents?: readonly string[];
  /** Setup script, which runs first, in the session's own folder. */
  readonly before: string;
  /** Scripts that run before the first line of a document. */
  readonly beforeDocument?: { readonly [file: string]: string };
  /** Replacements for placeholders in the blocks. Each must occur. */
  readonly reads?: readonly (readonly [text: string, here: string])[];
  /** Commands that the document shows failing: the exit code and the start of the command. */
  readonly ends?: readonly string[];
  /** Expected output of all blocks together, in this order. */
  readonly says?: readonly RegExp[];
  /** Documented output that this small environment does not have. Each must occur. */
  readonly absent?: readonly string[];
  /** Commands of the test after the last block; they must exit with 0. */
  readonly after?: string;
  /** Required files of the checkout; the session skips without them. */
  readonly needs?: readonly string[];
}

/** The build results exist already: make prints its commands, and fails for an unknown target. */
const IN_CHECKOUT = 'unset -f proofgate; cd "$CHECKOUT"; export MAKEFLAGS=n';

/** Longer timeouts: on a busy machine, programs start slowly and answers take more than half a second. */
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
  rollout: {
    before: IN_CHECKOUT,
    reads: [
      ['--retry 60 ', '--retry 300 '],
      ['sed "s#', 'sed "s#timeout: 0.5s#timeout: 8s#;s#'],
    ],
    says: [
      /safe to enforce: 100 % verified/,
      /1 source left/,
      /path_template: \/v1\/reports\/\{p3\}$/m,
      /^get-v1-reports-p3: 1 requests/m,
      /client:reporting/,
      /100 % verified, 0 sources left/,
      /client:warehouse/,
      /100 % verified, 0 sources left/,
      /error: 401/,
    ],
    after: 'test $(cat answers | wc -l) = 75',
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
  'without-gateway': {
    before: IN_CHECKOUT,
    reads: [['--retry 30 ', '--retry 300 ']],
    says: [
      /^GET by client:billing$/m,
      / 403\b/,
      /content-sha256/,
      / 200\b/,
      /^POST by client:billing$/m,
      / 401\b/,
      /authorization_missing/,
      /^HTTP\/1\.1: .* 0 failed$/m,
      /^HTTP\/2: .* 0 failed$/m,
    ],
  },
  bundles: {
    before:
      'own_machine; cp "$CHECKOUT/bundles/minimal.yaml" bundle.yaml; touch /var/lib/proofgate/high-water-mark.json',
  },
  signing: {
    documents: ['docs/operate/cli.md', 'docs/operate/explain.md'],
    before: '. "$CHECKOUT/test/docs/sessions/signing.sh"',
    beforeDocument: { 'docs/operate/explain.md': 'capture_allowed' },
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
    // A bundle stores up to a thousand keys inline.
    absent: ['keys-0001.jsonl'],
    documents: ['docs/operate/control.md', 'docs/operate/ctl.md', 'README.md', 'docs/operate/cli.md'],
    before: '. "$CHECKOUT/test/docs/sessions/site.sh"',
    reads: [['epr_7f3c9a', '"$policy"']],
    says: [/^group:platform has the role admin/m, /^pga_/m, /group:platform|Ada/, /"order":7/],
  },
  'break-glass': {
    before: '. "$CHECKOUT/test/docs/sessions/break-glass.sh"',
    says: [/^Ed25519 key \S+ in offline\.pem$/m, /^revision 1, head \S+, until \S+Z, in break-glass\.jws$/m],
  },
  spiffe: {
    needs: ['.cache/spire/bin/spire-server', '.cache/spire/bin/spire-agent'],
    before: '. "$CHECKOUT/test/docs/sessions/spiffe.sh"',
    reads: [
      // One user runs all of a session: hence `--svid-id`.
      ['unix:user:broker', 'unix:uid:0'],
      ['unix:user:billing', 'unix:uid:0'],
      // Control has the port at another address.
      ['--listen 0.0.0.0:443', '--listen 127.0.0.3:443'],
      ['--retry 30 ', '--retry 300 '],
    ],
    says: [/^SPIFFE ID +: spiffe:\/\/shop\.example\/ns\/prod\/sa\/billing$/m, /^\{"order":7\}$/m],
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
      'docs/operate/gateways.md':
        'namespaces istio-ingress gateway prod; for name in envoy api; do cp tls.crt $name.crt && cp tls.key $name.key; done; sidecars istio-ingress gateway; first_request',
      'docs/operate/spiffe.md': 'without_releases; export PATH=$CHECKOUT/bin:$PATH',
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
    after:
      'cp -r . "$RELEASE_OF_SESSION" && cp ../../release-key.pem ../../release-key.pub.pem "$RELEASE_OF_SESSION/.."',
  },
};
