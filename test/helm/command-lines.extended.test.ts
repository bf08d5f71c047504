/** Checks that the program accepts each rendered command line: its flags, their values, and its environment variables. */
import { expect, it } from '@jest/globals';
import { BROKER_SETTINGS } from '../../src/broker/program/broker-settings.ts';
import { ENROLL_SETTINGS } from '../../src/caller/enroll/enroll-settings.ts';
import { CONTROL_SETTINGS } from '../../src/control/program/control-settings.ts';
import { PROXY_SETTINGS } from '../../src/enforcement/programs/proxy/proxy-settings.ts';
import { VERIFIER_SETTINGS } from '../../src/enforcement/programs/verifier/verifier-settings.ts';
import { collectTexts, settingValues, variableOf } from '../../src/process/settings/setting-sources.ts';
import type { SettingDeclarations } from '../../src/process/settings/settings.ts';
import {
  type Container,
  containersOf,
  describeChart,
  podsOf,
  render,
  VALUE_FILES,
} from '../support/chart/chart.ts';

const COMMANDS: { readonly [command: string]: SettingDeclarations } = {
  verifier: VERIFIER_SETTINGS,
  proxy: PROXY_SETTINGS,
  control: CONTROL_SETTINGS,
  broker: BROKER_SETTINGS,
  enroll: ENROLL_SETTINGS,
};

/** Values that replace those of Secrets. */
const FROM_SECRET: { readonly [variable: string]: string } = {
  PROOFGATE_REPLAY: 'redis://:secret@redis:6379',
};

/** @throws Error for an argument that is not a flag of the command */
function flagsOf(
  container: Container,
  settings: SettingDeclarations,
): ReadonlyMap<string, readonly string[]> {
  const known = Object.values(settings);
  const given = new Map<string, string[]>();
  for (const arg of container.args.slice(1)) {
    const [, flag = '', value] = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(arg) ?? [];
    const setting = known.find((one) => one.flag === flag);
    if (setting === undefined) throw new Error(`${arg} is no flag of proofgate ${container.args[0]}`);
    if (value === undefined && setting.valueName !== undefined) throw new Error(`${arg} has no value`);
    const texts = [...(given.get(flag) ?? []), value ?? 'true'];
    if (texts.length > 1 && !setting.repeatable) throw new Error(`${arg} is given twice`);
    given.set(flag, texts);
  }
  return given;
}

describeChart('the command line', () => {
  const containers = VALUE_FILES.flatMap((file) =>
    podsOf(render({ file })).flatMap(({ of, spec }) =>
      containersOf(spec)
        .filter(({ args: [command = ''] }) => command in COMMANDS)
        .map((container) => [`${file}: ${of}, ${container.name}`, container] as const),
    ),
  );

  it('is checked for every program', () => {
    expect(new Set(containers.map(([, { args }]) => args[0]))).toEqual(new Set(Object.keys(COMMANDS)));
    expect(containers.length).toBeGreaterThan(VALUE_FILES.length);
  });

  it.each(containers)('of %s says what its program takes', async (_name, container) => {
    const settings = COMMANDS[container.args[0] ?? ''] ?? {};
    expect(container.command).toEqual(['proofgate']);
    const ours = (container.env ?? []).filter(({ name }) => name.startsWith('PROOFGATE_'));
    const variables = Object.values(settings).map(({ flag }) => variableOf(flag));
    expect(ours.filter(({ name }) => !variables.includes(name))).toEqual([]);
    const env = Object.fromEntries(ours.map(({ name }) => [name, FROM_SECRET[name]]));
    const sources = { flags: flagsOf(container, settings), env };
    const values = settingValues(settings, await collectTexts(Object.values(settings), sources));
    expect(Object.keys(values).length).toBe(Object.keys(settings).length);
  });

  it('with a flag that there is not would be noticed', () => {
    const [, container] = containers[0] ?? [];
    const broken = { ...container, args: ['control', '--data-dirs=/x'] } as Container;
    expect(() => flagsOf(broken, CONTROL_SETTINGS)).toThrow('--data-dirs=/x is no flag of proofgate control');
  });
});
