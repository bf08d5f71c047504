/**
 * Replaces verifiers under load (docs/operate/enforcement.md "Replacing verifiers"): a new verifier starts, the old one ends. No valid
 * request is denied, and the new verifier denies every proof that the old one accepted.
 * `PROOFGATE_TEST_ROLLS` sets the number of rolls. `PROOFGATE_TEST_TIMEOUTS=shipped` keeps the shipped time-outs.
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { VERIFIER_SERVICES } from '../../support/docs/manifest-sets.ts';
import { readText } from '../../support/docs/markdown.ts';
import { protocolOptionsOf } from '../../support/docs/static-bootstrap.ts';
import { type ConfigEdit, shipped } from '../../support/harness/envoy-config.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { waitFor } from '../../support/wait.ts';
import { besideVerifier, HAS_SHIPPED_TIMEOUTS, RollStage } from './roll-fixture.ts';
import { openServiceAddress, type ServiceAddress } from './service-address.ts';
import { SteadyLoad } from './steady-load.ts';

const ROLLS = Number(process.env.PROOFGATE_TEST_ROLLS ?? 2);
const TIMEOUT_MS = 300_000 + ROLLS * 60_000;
/** The chart's `preStopSeconds`. */
const PRE_STOP_MS = 5_000;
/** Requests that a roll must have seen before it, so that there is something to lose. */
const REQUESTS_BETWEEN = 60;

const PROTOCOL_OPTIONS = [...shipped.verifierCluster, 'typed_extension_protocol_options'] as const;

/** Envoy's own setting, and what gateways make of theirs (envoy/, as translated in test/gateways/dumps). */
const SHORT_CONNECTIONS: readonly {
  readonly as: string;
  readonly rolls: number;
  readonly edit: ConfigEdit;
}[] = [
  {
    as: 'docs/operate/enforcement.md',
    rolls: ROLLS,
    edit: {
      path: [
        ...PROTOCOL_OPTIONS,
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        'common_http_protocol_options',
      ],
      value: { max_connection_duration: '3s' },
    },
  },
  ...VERIFIER_SERVICES.map(({ cluster, dump }) => ({
    as: dump,
    // The same as above by another name.
    rolls: Math.ceil(ROLLS / 3),
    edit: {
      path: PROTOCOL_OPTIONS,
      value: protocolOptionsOf(JSON.parse(readText(`test/gateways/dumps/${dump}.json`)), cluster),
    },
  })),
];

let stage: RollStage;
beforeEach(async () => {
  stage = await RollStage.set();
});
afterEach(() => stage.strike());

interface Roll {
  /** Another verifier is started, and Envoy asks it. */
  readonly bringIn: () => Promise<void>;
  /** The one before ends. */
  readonly takeOut: () => Promise<void>;
}

/**
 * Rolls under load. Each proof is presented again when the verifier that accepted it has ended, so that the other verifier
 * denies it.
 */
async function rollUnderLoad({ bringIn, takeOut }: Roll, rolls = ROLLS): Promise<void> {
  const load = new SteadyLoad(() => stage.source.mint().request, http1Client(stage.envoy));
  let replays = 0;
  try {
    for (let roll = 0; roll < rolls; roll += 1) {
      await moreOf(load);
      await bringIn();
      await moreOf(load);
      await takeOut();
      await moreOf(load);
      const answers = await load.presentAgain();
      expect(Object.fromEntries(answers)).toEqual({ '403 jti_replay': expect.any(Number) });
      replays += answers.get('403 jti_replay') ?? 0;
    }
  } finally {
    await load.stop();
  }
  process.stdout.write(
    `${rolls} rolls: ${load.sent} requests, ${load.refused.length} refused, ${replays} replays refused\n`,
  );
  expect({ refused: load.refused, logged: serverErrorLines(load) }).toEqual({ refused: [], logged: [] });
  expect(replays).toBeGreaterThan(rolls * REQUESTS_BETWEEN);
}

/** Envoy's log about good requests that were denied. */
function serverErrorLines({ refused }: SteadyLoad): readonly string[] {
  return refused.length === 0 ? [] : stage.envoy.accessLog.filter((line) => JSON.parse(line).status >= 500);
}

async function moreOf(load: SteadyLoad): Promise<void> {
  const before = load.sent;
  await waitFor('more requests', () => (load.sent >= before + REQUESTS_BETWEEN ? true : undefined));
}

const HEALTHY = 'cluster.proofgate.membership_healthy';

describe('Envoy asks each verifier for its health', () => {
  /** The number of endpoints that Envoy considers healthy. */
  const healthy = (count: number) =>
    waitFor(`${count} healthy`, async () => ((await stage.envoy.stat(HEALTHY)) === count ? true : undefined));

  it(
    'and none that is good is refused while they are replaced',
    async () => {
      const ports = [await freePort(), await freePort()] as const;
      const start = (turn: number) => stage.startVerifier(ports[turn % 2] ?? 0, ['--drain-delay', '5s']);
      let running = await start(0);
      await stage.startEnvoy({
        verifier: { kind: 'tcp', host: '127.0.0.1', port: ports[0] },
        healthChecks: true,
        edits: besideVerifier(ports[1]),
      });
      await healthy(1);
      let turn = 0;
      let former = running;
      await rollUnderLoad({
        async bringIn() {
          turn += 1;
          former = running;
          running = await start(turn);
          await healthy(2);
        },
        async takeOut() {
          await stage.stopVerifier(former);
          await healthy(1);
        },
      });
    },
    TIMEOUT_MS,
  );
});

describe('Envoy knows one address with verifiers behind it', () => {
  let address: ServiceAddress;
  beforeEach(async () => {
    address = await openServiceAddress([]);
  });
  afterEach(() => address.close());

  it.each(SHORT_CONNECTIONS)(
    'and none that is good is refused where its connections are short: $as',
    async ({ edit, rolls }) => {
      const start = async () => {
        const port = await freePort();
        return { port, verifier: await stage.startVerifier(port) };
      };
      let running = await start();
      address.behind = [running.port];
      await stage.startEnvoy({
        verifier: { kind: 'tcp', host: '127.0.0.1', port: address.port },
        edits: [edit],
      });
      let former = running;
      await rollUnderLoad(
        {
          async bringIn() {
            former = running;
            running = await start();
            address.behind = [former.port, running.port];
          },
          async takeOut() {
            // As Kubernetes does: no new connections, and later the signal. Envoy leaves by itself in between: what would be lost otherwise is
            // lost between two packets, and seldom seen.
            address.behind = [running.port];
            await waitFor(
              'Envoy to leave',
              () => address.connectionsTo(former.port) === 0,
              HAS_SHIPPED_TIMEOUTS ? PRE_STOP_MS : undefined,
            );
            await stage.stopVerifier(former.verifier);
          },
        },
        rolls,
      );
    },
    TIMEOUT_MS,
  );
});
