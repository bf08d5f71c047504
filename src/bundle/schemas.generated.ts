/**
 * The schemas of `schema.ts` and `distribution-contract.ts` as plain JSON Schema, for whoever checks and builds none.
 * Generated: test/bundle/published.test.ts says how, and when it must be done again.
 */
import type { XSchema } from 'typebox/schema';

export const BUNDLE_SHAPE: XSchema = {
  type: 'object',
  required: [
    'format',
    'auth_site',
    'revision',
    'issued_at',
    'expires_at',
    'origins',
    'routes',
    'route_sources',
  ],
  properties: {
    format: { type: 'string', const: 'proofgate.bundle/v1' },
    auth_site: {
      type: 'string',
      pattern: '^[!-~]{1,512}$',
      description: "Must be the verifier's --auth-site.",
    },
    revision: {
      type: 'integer',
      minimum: 1,
      maximum: 9007199254740991,
      description: 'Higher than the revision before.',
    },
    previous_head: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{43}$',
      description: 'Head of the document before; absent in the first. SHA-256, base64url.',
    },
    issued_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'When the content was the latest. RFC 3339, UTC, whole seconds.',
    },
    expires_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'The content is of no use from this moment on. RFC 3339, UTC, whole seconds.',
    },
    skew_seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 60,
      default: 5,
      description: 'How far clocks may be apart.',
    },
    origins: {
      type: 'array',
      items: { type: 'string', minLength: 8, maxLength: 520 },
      minItems: 1,
      maxItems: 1000,
      uniqueItems: true,
      description: 'Scheme and authority that requests may be signed for, in canonical form.',
    },
    single_verifier: {
      type: 'boolean',
      default: false,
      description: 'One verifier process serves the site: the embedded replay store is allowed.',
    },
    trust_anchor_sources: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'revision', 'fingerprint'],
        properties: {
          id: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Names the source.' },
          revision: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
          fingerprint: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'As validation reported it.',
          },
        },
        additionalProperties: false,
        description: 'Informational: an enrollment source that stands behind derived keys.',
      },
      maxItems: 1000,
    },
    issuers: {
      type: 'array',
      items: {
        type: 'object',
        required: ['issuer', 'trust_domain', 'subject_prefixes', 'key_binding', 'keys'],
        properties: {
          issuer: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: "The passport's iss. Must not be the issuer of a client.",
          },
          trust_domain: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: "The passport's trust_domain.",
          },
          subject_prefixes: {
            type: 'array',
            items: { type: 'string', pattern: '^[!-~]{0,512}$' },
            minItems: 1,
            maxItems: 1000,
            uniqueItems: true,
            description:
              'What its keys may speak for. Each ends in "/" or ":"; the empty one says: anything.',
          },
          key_binding: {
            enum: ['software', 'attested_workload'],
            description: 'The strongest class that its keys may attest.',
          },
          max_passport_ttl_seconds: {
            type: 'integer',
            minimum: 1,
            maximum: 3600,
            default: 300,
            description: 'Longest exp - iat.',
          },
          keys: {
            type: 'array',
            items: {
              type: 'object',
              required: ['kid', 'alg', 'jwk'],
              properties: {
                kid: {
                  type: 'string',
                  pattern: '^[!-~]{1,128}$',
                  description: 'Shares one namespace with key_id.',
                },
                alg: { enum: ['Ed25519', 'ES256'], description: 'Must be the algorithm of the key.' },
                jwk: {
                  anyOf: [
                    {
                      type: 'object',
                      required: ['kty', 'crv', 'x'],
                      properties: {
                        kty: { type: 'string', const: 'OKP' },
                        crv: { type: 'string', const: 'Ed25519' },
                        x: {
                          type: 'string',
                          pattern: '^[A-Za-z0-9_-]{43}$',
                          description: '32 bytes, canonical base64url.',
                        },
                      },
                      additionalProperties: false,
                    },
                    {
                      type: 'object',
                      required: ['kty', 'crv', 'x', 'y'],
                      properties: {
                        kty: { type: 'string', const: 'EC' },
                        crv: { type: 'string', const: 'P-256' },
                        x: {
                          type: 'string',
                          pattern: '^[A-Za-z0-9_-]{43}$',
                          description: '32 bytes, canonical base64url.',
                        },
                        y: {
                          type: 'string',
                          pattern: '^[A-Za-z0-9_-]{43}$',
                          description: '32 bytes, canonical base64url.',
                        },
                      },
                      additionalProperties: false,
                    },
                  ],
                  description:
                    'Public key (RFC 7517, RFC 8037). Ed25519: canonical, of full order. P-256: on the curve. Nothing else.',
                },
                not_before: {
                  type: 'string',
                  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
                  description: 'Passports are taken from this moment on. RFC 3339, UTC, whole seconds.',
                },
                not_after: {
                  type: 'string',
                  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
                  description: 'Passports are taken before this moment. RFC 3339, UTC, whole seconds.',
                },
              },
              additionalProperties: false,
            },
            minItems: 1,
            maxItems: 64,
          },
        },
        additionalProperties: false,
        description: 'A broker: signs passports for others.',
      },
      maxItems: 1000,
    },
    clients: {
      type: 'array',
      items: {
        type: 'object',
        required: ['client_id', 'issuer', 'trust_domain', 'subject', 'grants'],
        properties: {
          client_id: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Names the client.' },
          issuer: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'The iss of passports that its derived keys sign.',
          },
          trust_domain: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Their trust_domain.' },
          subject: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'Their sub. A SPIFFE ID lies in trust_domain.',
          },
          context: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Value.' },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'What its derived keys act for.',
          },
          grants: {
            type: 'array',
            items: {
              type: 'object',
              required: ['resource', 'access'],
              properties: {
                resource: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: 'What routes name as their resource.',
                },
                access: { enum: ['read', 'write'], description: 'write includes read.' },
              },
              additionalProperties: false,
            },
            maxItems: 10000,
            description: 'Each resource once.',
          },
        },
        additionalProperties: false,
        description: 'Whom derived keys act for.',
      },
      maxItems: 100000,
    },
    derived_keys: {
      type: 'array',
      items: {
        type: 'object',
        required: ['key_id', 'client_id', 'jwk', 'status', 'expires_at'],
        properties: {
          key_id: {
            type: 'string',
            pattern: '^[!-~]{1,128}$',
            description: 'Shares one namespace with kid.',
          },
          client_id: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'The client that it acts for.',
          },
          jwk: {
            anyOf: [
              {
                type: 'object',
                required: ['kty', 'crv', 'x'],
                properties: {
                  kty: { type: 'string', const: 'OKP' },
                  crv: { type: 'string', const: 'Ed25519' },
                  x: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                },
                additionalProperties: false,
              },
              {
                type: 'object',
                required: ['kty', 'crv', 'x', 'y'],
                properties: {
                  kty: { type: 'string', const: 'EC' },
                  crv: { type: 'string', const: 'P-256' },
                  x: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                  y: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                },
                additionalProperties: false,
              },
            ],
            description:
              'Public key (RFC 7517, RFC 8037). Ed25519: canonical, of full order. P-256: on the curve. Nothing else.',
          },
          status: { enum: ['active', 'revoked'] },
          expires_at: {
            type: 'string',
            pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
            description: 'Requests are taken before this moment. RFC 3339, UTC, whole seconds.',
          },
          provenance: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Value.' },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'Where the key comes from.',
          },
        },
        additionalProperties: false,
        description: 'A key that Control derived for a workload. Always of class software.',
      },
      maxItems: 10000,
    },
    key_shards: {
      type: 'array',
      items: {
        type: 'object',
        required: ['file', 'count', 'sha256'],
        properties: {
          file: { type: 'string', pattern: '^keys-[0-9]{4}\\.jsonl$', description: 'Beside the bundle.' },
          count: { type: 'integer', minimum: 1, maximum: 50000, description: 'Keys in it, one a line.' },
          sha256: {
            type: 'string',
            pattern: '^[A-Za-z0-9_-]{43}$',
            description: "Of the file's bytes. SHA-256, base64url.",
          },
        },
        additionalProperties: false,
        description: 'Derived keys beyond 10000, as lines of JSON in a file of their own.',
      },
      maxItems: 100,
    },
    routes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['route_id', 'method', 'path_template', 'audience', 'freshness_class'],
        properties: {
          route_id: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Names the route.' },
          method: {
            type: 'string',
            pattern: "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,32}$",
            description: 'Compared exactly, case included.',
          },
          path_template: {
            type: 'string',
            pattern: '^/[!-~]{0,2047}$',
            description: 'Literal segments, {name} for one segment, {name*} at the end for one or more.',
          },
          audience: { type: 'string', pattern: '^[!-~]{1,512}$', description: "The passport's aud." },
          freshness_class: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'bounded or realtime; a route with another one denies every request.',
          },
          max_staleness_seconds: {
            type: 'integer',
            minimum: 1,
            maximum: 31536000,
            description: 'Greatest age of the content. Required for bounded.',
          },
          resource: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'What a derived key must be granted. Default: the route_id.',
          },
          access: {
            enum: ['read', 'write'],
            description: 'Default: read for GET, HEAD and OPTIONS; else write.',
          },
          origins: {
            type: 'array',
            items: { type: 'string', minLength: 8, maxLength: 520 },
            minItems: 1,
            maxItems: 1000,
            uniqueItems: true,
            description: "Narrower than the site's.",
          },
          signed_headers: {
            type: 'array',
            items: { type: 'string', minLength: 1, maxLength: 128 },
            maxItems: 32,
            uniqueItems: true,
            description: 'Lower-case names of headers that every transcript must sign.',
          },
          body: {
            enum: ['bound', 'unbound'],
            default: 'bound',
            description:
              'unbound: the body is not part of the proof. For streams and uploads that no buffer holds.',
          },
          required_provenance: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': {
                type: 'array',
                items: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Allowed value.' },
                minItems: 1,
                maxItems: 1000,
                uniqueItems: true,
              },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'Name to the values allowed.',
          },
          required_context: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': {
                type: 'array',
                items: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Allowed value.' },
                minItems: 1,
                maxItems: 1000,
                uniqueItems: true,
              },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'Name to the values allowed.',
          },
          forward_authorization: {
            type: 'boolean',
            default: false,
            description: 'Whether the upstream receives the passport.',
          },
        },
        additionalProperties: false,
        description: 'Which requests there are, and what each must carry.',
      },
      maxItems: 50000,
    },
    route_sources: {
      type: 'array',
      items: {
        type: 'object',
        required: ['route_id', 'allowed_sources'],
        properties: {
          route_id: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'Every route has exactly one of these.',
          },
          allowed_sources: {
            type: 'array',
            items: {
              type: 'object',
              required: ['issuer', 'trust_domain', 'required_key_binding'],
              properties: {
                issuer: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: "Equals the passport's iss.",
                },
                trust_domain: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: "Equals the passport's trust_domain.",
                },
                subject_exact: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: "Equals the passport's sub. Either this or subject_prefix.",
                },
                subject_prefix: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: 'Begins it. Ends in "/" or ":".',
                },
                required_key_binding: {
                  enum: ['software', 'attested_workload'],
                  description: 'Weakest class that is enough.',
                },
              },
              additionalProperties: false,
            },
            minItems: 1,
            maxItems: 1000,
          },
        },
        additionalProperties: false,
        description: 'Who may call a route.',
      },
      maxItems: 50000,
    },
  },
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Proofgate trust and policy bundle',
  description: 'Content of bundle.jws. Rules beyond the shape are in docs/bundle.md.',
  additionalProperties: false,
};

export const DELTA_SHAPE: XSchema = {
  type: 'object',
  required: [
    'auth_site',
    'revision',
    'previous_head',
    'issued_at',
    'clients_put',
    'clients_removed',
    'keys_put',
    'keys_removed',
  ],
  properties: {
    auth_site: {
      type: 'string',
      pattern: '^[!-~]{1,512}$',
      description: "Must be the verifier's --auth-site.",
    },
    revision: {
      type: 'integer',
      minimum: 1,
      maximum: 9007199254740991,
      description: 'Higher than the revision before.',
    },
    previous_head: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{43}$',
      description: 'Head of the document before. SHA-256, base64url.',
    },
    issued_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'When the content was the latest. RFC 3339, UTC, whole seconds.',
    },
    clients_put: {
      type: 'array',
      items: {
        type: 'object',
        required: ['client_id', 'issuer', 'trust_domain', 'subject', 'grants'],
        properties: {
          client_id: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Names the client.' },
          issuer: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'The iss of passports that its derived keys sign.',
          },
          trust_domain: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Their trust_domain.' },
          subject: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'Their sub. A SPIFFE ID lies in trust_domain.',
          },
          context: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Value.' },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'What its derived keys act for.',
          },
          grants: {
            type: 'array',
            items: {
              type: 'object',
              required: ['resource', 'access'],
              properties: {
                resource: {
                  type: 'string',
                  pattern: '^[!-~]{1,512}$',
                  description: 'What routes name as their resource.',
                },
                access: { enum: ['read', 'write'], description: 'write includes read.' },
              },
              additionalProperties: false,
            },
            maxItems: 10000,
            description: 'Each resource once.',
          },
        },
        additionalProperties: false,
        description: 'Whom derived keys act for.',
      },
      maxItems: 100000,
    },
    clients_removed: {
      type: 'array',
      items: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'client_id.' },
      maxItems: 100000,
    },
    keys_put: {
      type: 'array',
      items: {
        type: 'object',
        required: ['key_id', 'client_id', 'jwk', 'status', 'expires_at'],
        properties: {
          key_id: {
            type: 'string',
            pattern: '^[!-~]{1,128}$',
            description: 'Shares one namespace with kid.',
          },
          client_id: {
            type: 'string',
            pattern: '^[!-~]{1,512}$',
            description: 'The client that it acts for.',
          },
          jwk: {
            anyOf: [
              {
                type: 'object',
                required: ['kty', 'crv', 'x'],
                properties: {
                  kty: { type: 'string', const: 'OKP' },
                  crv: { type: 'string', const: 'Ed25519' },
                  x: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                },
                additionalProperties: false,
              },
              {
                type: 'object',
                required: ['kty', 'crv', 'x', 'y'],
                properties: {
                  kty: { type: 'string', const: 'EC' },
                  crv: { type: 'string', const: 'P-256' },
                  x: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                  y: {
                    type: 'string',
                    pattern: '^[A-Za-z0-9_-]{43}$',
                    description: '32 bytes, canonical base64url.',
                  },
                },
                additionalProperties: false,
              },
            ],
            description:
              'Public key (RFC 7517, RFC 8037). Ed25519: canonical, of full order. P-256: on the curve. Nothing else.',
          },
          status: { enum: ['active', 'revoked'] },
          expires_at: {
            type: 'string',
            pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
            description: 'Requests are taken before this moment. RFC 3339, UTC, whole seconds.',
          },
          provenance: {
            type: 'object',
            patternProperties: {
              '^[!-~]{1,512}$': { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Value.' },
            },
            additionalProperties: false,
            maxProperties: 32,
            description: 'Where the key comes from.',
          },
        },
        additionalProperties: false,
        description: 'A key that Control derived for a workload. Always of class software.',
      },
      maxItems: 10000,
    },
    keys_removed: {
      type: 'array',
      items: { type: 'string', pattern: '^[!-~]{1,128}$', description: 'key_id.' },
      maxItems: 50000,
    },
  },
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Proofgate bundle delta',
  description: 'Content of delta-<revision>.jws.',
  additionalProperties: false,
};

export const DERIVED_KEY_SHAPE: XSchema = {
  type: 'object',
  required: ['key_id', 'client_id', 'jwk', 'status', 'expires_at'],
  properties: {
    key_id: { type: 'string', pattern: '^[!-~]{1,128}$', description: 'Shares one namespace with kid.' },
    client_id: { type: 'string', pattern: '^[!-~]{1,512}$', description: 'The client that it acts for.' },
    jwk: {
      anyOf: [
        {
          type: 'object',
          required: ['kty', 'crv', 'x'],
          properties: {
            kty: { type: 'string', const: 'OKP' },
            crv: { type: 'string', const: 'Ed25519' },
            x: {
              type: 'string',
              pattern: '^[A-Za-z0-9_-]{43}$',
              description: '32 bytes, canonical base64url.',
            },
          },
          additionalProperties: false,
        },
        {
          type: 'object',
          required: ['kty', 'crv', 'x', 'y'],
          properties: {
            kty: { type: 'string', const: 'EC' },
            crv: { type: 'string', const: 'P-256' },
            x: {
              type: 'string',
              pattern: '^[A-Za-z0-9_-]{43}$',
              description: '32 bytes, canonical base64url.',
            },
            y: {
              type: 'string',
              pattern: '^[A-Za-z0-9_-]{43}$',
              description: '32 bytes, canonical base64url.',
            },
          },
          additionalProperties: false,
        },
      ],
      description:
        'Public key (RFC 7517, RFC 8037). Ed25519: canonical, of full order. P-256: on the curve. Nothing else.',
    },
    status: { enum: ['active', 'revoked'] },
    expires_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'Requests are taken before this moment. RFC 3339, UTC, whole seconds.',
    },
    provenance: {
      type: 'object',
      patternProperties: {
        '^[!-~]{1,512}$': { type: 'string', pattern: '^[!-~]{1,512}$', description: 'Value.' },
      },
      additionalProperties: false,
      maxProperties: 32,
      description: 'Where the key comes from.',
    },
  },
  additionalProperties: false,
  description: 'A key that Control derived for a workload. Always of class software.',
};

export const FRESHNESS_SHAPE: XSchema = {
  type: 'object',
  required: ['auth_site', 'revision', 'head', 'as_of'],
  properties: {
    auth_site: {
      type: 'string',
      pattern: '^[!-~]{1,512}$',
      description: "Must be the verifier's --auth-site.",
    },
    revision: {
      type: 'integer',
      minimum: 1,
      maximum: 9007199254740991,
      description: 'Higher than the revision before.',
    },
    head: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{43}$',
      description: 'Names the revision and all before it. SHA-256, base64url.',
    },
    as_of: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'When that revision was the latest. RFC 3339, UTC, whole seconds.',
    },
  },
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Proofgate freshness statement',
  description: 'Content of freshness.jws.',
  additionalProperties: false,
};

export const LINK_SHAPE: XSchema = {
  type: 'object',
  required: ['auth_site', 'revision', 'previous_head', 'bundle_sha256', 'issued_at', 'expires_at'],
  properties: {
    auth_site: {
      type: 'string',
      pattern: '^[!-~]{1,512}$',
      description: "Must be the verifier's --auth-site.",
    },
    revision: {
      type: 'integer',
      minimum: 1,
      maximum: 9007199254740991,
      description: 'Higher than the revision before.',
    },
    previous_head: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{43}$',
      description: 'Head of the document before. SHA-256, base64url.',
    },
    bundle_sha256: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{43}$',
      description: "Of the bundle's payload. SHA-256, base64url.",
    },
    issued_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'issued_at of the bundle. RFC 3339, UTC, whole seconds.',
    },
    expires_at: {
      type: 'string',
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
      description: 'expires_at of the bundle. RFC 3339, UTC, whole seconds.',
    },
  },
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Proofgate bundle link',
  description: 'Content of link-<revision>.jws.',
  additionalProperties: false,
};

export const POLL_ANSWER_SHAPE: XSchema = {
  type: 'object',
  required: ['auth_site', 'revision', 'head', 'steps'],
  properties: {
    auth_site: { type: 'string' },
    revision: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
    head: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$', description: 'base64url SHA-256.' },
    steps: {
      type: 'array',
      items: {
        type: 'object',
        required: ['kind', 'revision', 'document'],
        properties: {
          kind: { enum: ['delta', 'link'] },
          revision: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
          document: { type: 'string' },
        },
        additionalProperties: false,
      },
      description: "From the target's position on; empty when it has all or cannot continue.",
    },
    whole: {
      type: 'object',
      required: ['revision', 'head', 'files', 'steps', 'required'],
      properties: {
        revision: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
        head: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$', description: 'base64url SHA-256.' },
        files: {
          type: 'array',
          items: {
            type: 'object',
            required: ['name', 'bytes', 'sha256', 'path'],
            properties: {
              name: { type: 'string', pattern: '^(bundle\\.jws|keys-[0-9]{4}\\.jsonl)$' },
              bytes: { type: 'integer', minimum: 1 },
              sha256: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$', description: 'base64url SHA-256.' },
              path: { type: 'string', pattern: '^/v1/targets/self/bundles/' },
            },
            additionalProperties: false,
          },
          minItems: 1,
        },
        steps: {
          type: 'array',
          items: {
            type: 'object',
            required: ['kind', 'revision', 'document'],
            properties: {
              kind: { enum: ['delta', 'link'] },
              revision: { type: 'integer', minimum: 1, maximum: 9007199254740991 },
              document: { type: 'string' },
            },
            additionalProperties: false,
          },
        },
        required: { type: 'boolean' },
      },
      additionalProperties: false,
    },
    freshness: { type: 'string', description: 'The newest statement: a JWS, JSON text as signed.' },
  },
  additionalProperties: false,
  $id: 'TargetBundle',
};
