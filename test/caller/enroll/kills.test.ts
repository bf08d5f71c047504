/** Kills a run at every step: whatever it has saved and sent, the next run ends with one key. */
import { afterEach, expect, it } from '@jest/globals';
import { FakeControl } from '../../support/fakes/control-enrollment.ts';
import { Killed, newWorkload, outcomeOf, startEnroll, type Workload } from './enroll-fixture.ts';

let control: FakeControl;
afterEach(() => control.close());

interface Death {
  /** Dies around this save of the state; when undefined, at this request to Control. */
  readonly save: { readonly moment: 'before' | 'after'; readonly number: number } | undefined;
}

function dieAt({ save }: Death, workload: Workload): void {
  workload.states.onSave = (moment, number) => {
    if (save?.moment === moment && save.number === number) throw new Killed();
  };
}

const DEATHS = [1, 2, 3, 4].flatMap((number) =>
  (['before', 'after'] as const).map((moment) => ({ save: { moment, number } })),
);

it.each(DEATHS)('at $save.moment save $save.number, with manual approval', async (death) => {
  control = await FakeControl.start({ approval: 'manual' });
  const workload = newWorkload(await control.token());
  dieAt(death, workload);
  // Approve the enrollment while the first run polls.
  control.interfere = (method) => {
    if (method === 'GET') control.approveAll();
    return undefined;
  };
  expect(await outcomeOf(startEnroll(workload, { controlUrl: control.url }).ended)).toBe('killed');
  workload.states.onSave = () => {};
  expect(await outcomeOf(startEnroll(workload, { controlUrl: control.url }).ended)).toBe('done');
  expect(control.enrollments.size).toBe(1);
  expect(control.distinctSubmissions).toBe(1);
  const [keyId] = control.keyIds;
  expect(JSON.parse(workload.states.text ?? '').enrolled.derived_key.key_id).toBe(keyId);
});

it('at each save of each of many runs in a row', async () => {
  control = await FakeControl.start();
  const workload = newWorkload(await control.token());
  for (let number = 1; number <= 8; number++) {
    workload.states.saves = 0;
    dieAt(
      { save: { moment: number % 2 === 0 ? 'after' : 'before', number: Math.ceil(number / 2) } },
      workload,
    );
    await outcomeOf(startEnroll(workload, { controlUrl: control.url }).ended);
  }
  workload.states.onSave = () => {};
  expect(await outcomeOf(startEnroll(workload, { controlUrl: control.url }).ended)).toBe('done');
  expect(control.enrollments.size).toBe(1);
});
