import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createReplayMetrics, type ReplayReading } from '../../src/telemetry/replay-metrics.ts';

const REASONS = ['start', 'clock'];

async function lines(registry: Registry): Promise<readonly string[]> {
  const text = await registry.metrics();
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('metrics of the replay store', () => {
  it('count fences by reason, each from the start', async () => {
    const registry = new Registry();
    const metrics = createReplayMetrics(registry, REASONS, () => undefined);
    metrics.fenceRaised('clock');
    metrics.fenceRaised('clock');
    expect(await lines(registry)).toEqual([
      'proofgate_replay_fences_total{why="start"} 0',
      'proofgate_replay_fences_total{why="clock"} 2',
      'proofgate_replay_fence_seconds 0',
    ]);
  });

  it('show what is so when somebody asks', async () => {
    const registry = new Registry();
    let reading: ReplayReading = { fenceSecondsLeft: 17, links: { serving: 2, unfit: 1 } };
    createReplayMetrics(registry, [], () => reading);
    expect(await lines(registry)).toEqual([
      'proofgate_replay_fence_seconds 17',
      'proofgate_replay_links{state="serving"} 2',
      'proofgate_replay_links{state="unfit"} 1',
    ]);
    reading = { fenceSecondsLeft: 0, links: { serving: 3, unfit: 0 } };
    expect(await lines(registry)).toEqual([
      'proofgate_replay_fence_seconds 0',
      'proofgate_replay_links{state="serving"} 3',
      'proofgate_replay_links{state="unfit"} 0',
    ]);
  });
});
