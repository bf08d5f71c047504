/** Checks that the chart's version, README, alerts, flags and metrics match their sources. Needs no helm. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { BROKER_SETTINGS } from '../../src/broker/program/broker-settings.ts';
import { CONTROL_SETTINGS } from '../../src/control/program/control-settings.ts';
import { PROXY_SETTINGS } from '../../src/enforcement/programs/proxy/proxy-settings.ts';
import { VERIFIER_SETTINGS } from '../../src/enforcement/programs/verifier/verifier-settings.ts';
import type { SettingDeclarations } from '../../src/process/settings/settings.ts';
import { anchorOf, filesOfCheckout, headings, readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

it('README, alerts and version are current', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/make-chart-files.mjs', '--check'], {
    cwd: checkoutPath(),
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

it('the version is that of package.json', () => {
  const { version }: { readonly version: string } = JSON.parse(readText('package.json'));
  expect(parse(readText('helm/proofgate/Chart.yaml'))).toMatchObject({ version, appVersion: version });
});

it('README links to what the package has', () => {
  const links = [...readText('helm/proofgate/README.md').matchAll(/\]\(([^)]+)\)/g)].map(([, to = '']) => to);
  expect(links.length).toBeGreaterThan(0);
  expect(
    links.filter((to) => !/^(?:#|https:)/.test(to) && !existsSync(checkoutPath('helm', 'proofgate', to))),
  ).toEqual([]);
  expect(links.filter((to) => to.startsWith('..'))).toEqual([]);
});

describe('flags in `settings`', () => {
  const schema = JSON.parse(readText('helm/proofgate/values.schema.json'));

  const OF_POINTS =
    'auth-site bundle control-url control-token-file control-ca-file bundle-key freshness-key break-glass-key break-glass-file state-dir listen ' +
    'admin-listen tls-cert-file tls-key-file tls-client-ca-file tls-client-san replay redis-password-file redis-ca-file redis-sentinel-user ' +
    'redis-sentinel-password-file ';
  /** Flags that the chart sets from its own values. */
  const MANAGED = {
    broker:
      'public-url issuer listen admin-listen tls-cert-file tls-key-file key-dir challenge-key-file spiffe-socket spiffe-bundle ' +
      'spiffe-bundle-endpoint spiffe-bundle-ca-file software-keys deny-file profiles',
    proxy: `${OF_POINTS}upstream upstream-host upstream-server-name upstream-ca-file upstream-cert-file upstream-key-file spool-dir`,
    verifier:
      OF_POINTS +
      'http-listen http-profile http-body http-secret-file http-tls-cert-file ' +
      'http-tls-key-file http-tls-client-ca-file http-tls-client-san http-trusted-proxy',
    control:
      'data-dir listen admin-listen public-url tls-cert tls-key allow-plain-http database-url database-url-file ' +
      'master-key-file bootstrap-token-file oidc-issuer oidc-client-id oidc-client-secret-file oidc-ca-file issuer-ca-file',
  };

  it.each<readonly [keyof typeof MANAGED, SettingDeclarations]>([
    ['broker', BROKER_SETTINGS],
    ['proxy', PROXY_SETTINGS],
    ['verifier', VERIFIER_SETTINGS],
    ['control', CONTROL_SETTINGS],
  ])('of %s are all others, with the kind of value that they take', (program, settings) => {
    const managed = MANAGED[program].split(' ');
    const flags = Object.values(settings);
    expect(managed.filter((flag) => !flags.some((setting) => setting.flag === flag))).toEqual([]);
    const expected = flags
      .filter(({ flag }) => !managed.includes(flag))
      .map(({ fileScalar, flag, repeatable }) => {
        const type = fileScalar === 'number' ? 'integer' : fileScalar;
        const one = type === 'string' ? { type, minLength: 1 } : { type };
        return [camelCase(flag), repeatable ? { type: 'array', items: one } : one] as const;
      });
    const { additionalProperties, properties } = schema.properties[program].properties.settings;
    expect(additionalProperties).toBe(false);
    expect(properties).toEqual(Object.fromEntries(expected));
  });
});

function camelCase(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

describe('metrics', () => {
  const sources = filesOfCheckout('src', '.ts').map(readText).join('\n');
  /** prom-client appends these suffixes to the name of a histogram, and adds its own metrics. */
  const withoutSuffix = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '');
  const isThere = (name: string) =>
    /^(?:process|nodejs)_/.test(name) || sources.includes(`'${withoutSuffix(name)}'`);
  const namesIn = (text: string) => [...new Set(text.match(/\b(?:proofgate|grpc_server)_[a-z_]+\b/g) ?? [])];

  it.each([
    'files/broker-alerts.yaml',
    'files/dashboard.json',
    'files/control-alerts.yaml',
    'files/verifier-alerts.yaml',
  ])('of %s are ours', (file) => {
    const names = namesIn(readText(`helm/proofgate/${file}`));
    expect(names.length).toBeGreaterThan(4);
    expect(names.filter((name) => !isThere(name))).toEqual([]);
  });

  it('an unused name would be noticed', () => {
    expect(['proofgate_decisions', 'proofgate_decisions_total'].map(isThere)).toEqual([false, true]);
  });

  it('the dashboard has every metric of Control, and each panel a place and something to show', () => {
    const dashboard = readText('helm/proofgate/files/dashboard.json');
    const names = new Set(namesIn(dashboard));
    const ofControl = namesIn(readText('src/control/program/control-metrics.ts'));
    const unseen = [
      'proofgate_control_request_seconds',
      'proofgate_control_published_bytes_total',
      'proofgate_control_store_incidents_total',
    ];
    expect(ofControl.filter((name) => !names.has(name)).toSorted()).toEqual(unseen.toSorted());
    interface Panel {
      readonly type: string;
      readonly id: number;
      readonly targets?: readonly object[];
      /** Of a folded row. */
      readonly panels?: readonly Panel[];
    }
    const { panels }: { readonly panels: readonly Panel[] } = JSON.parse(dashboard);
    const all = panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
    expect(all.filter(({ targets = [], type }) => type !== 'row' && targets.length === 0)).toEqual([]);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  });

  it('the dashboard filters audit events by members that decisions have', () => {
    const members = readText('docs/reference/audit-events.md');
    const dashboard = readText('helm/proofgate/files/dashboard.json');
    const used = [...dashboard.matchAll(/\| (\w+)=~?\\"/g)].map(([, name = '']) => name);
    expect(new Set(used)).toEqual(new Set(['event', 'route_id', 'subject', 'outcome']));
    expect(used.filter((name) => !members.includes(`\`${name}\``))).toEqual([]);
  });

  it('the dashboard has every metric of the broker', () => {
    const names = new Set(namesIn(readText('helm/proofgate/files/dashboard.json')).map(withoutSuffix));
    const files = ['broker-metrics', 'program/broker-process-metrics'];
    const sources = files.map((file) => readText(`src/broker/${file}.ts`));
    const ofBroker = namesIn(sources.join('\n')).filter((name) => name.startsWith('proofgate_broker_'));
    expect(ofBroker.length).toBeGreaterThan(5);
    expect(ofBroker.filter((name) => !names.has(name))).toEqual([]);
  });

  it('alerts of the broker say how grave they are and where to read on', () => {
    const { groups } = parse(readText('helm/proofgate/files/broker-alerts.yaml'));
    const sections = headings(readText('docs/operate/broker.md')).map(anchorOf);
    for (const { annotations, labels } of groups[0].rules) {
      expect(['critical', 'warning', 'info']).toContain(labels.severity);
      const [document, anchor] = annotations.runbook.split('#');
      expect([document, sections]).toEqual(['docs/operate/broker.md', expect.arrayContaining([anchor])]);
    }
  });

  it('alerts of Control and of agents say how grave they are and where to read on', () => {
    const { groups } = parse(readText('helm/proofgate/files/control-alerts.yaml'));
    const pagesOfGroups = [
      ['control', 'control-upkeep', 'control-api', 'replay'].map((page) => `docs/operate/${page}.md`),
      ['docs/operate/workloads.md'],
    ];
    expect(groups.length).toBe(pagesOfGroups.length);
    for (const [index, { rules }] of groups.entries()) {
      for (const { annotations, labels } of rules) {
        expect(['critical', 'warning', 'info']).toContain(labels.severity);
        const [document, anchor] = annotations.runbook.split('#');
        expect(pagesOfGroups[index]).toContain(document);
        expect(headings(readText(document)).map(anchorOf)).toContain(anchor);
      }
    }
  });

  it('there is an alert for each thing that an operator must hear of', () => {
    const alerts = ['broker', 'verifier', 'control'].flatMap((program) => {
      const { groups } = parse(readText(`helm/proofgate/files/${program}-alerts.yaml`));
      return groups.flatMap(({ rules }: { readonly rules: readonly { readonly alert: string }[] }) =>
        rules.map(({ alert }) => alert),
      );
    });
    const needed = [
      'DenialSurge',
      'StaleBundle',
      'ReplayFence',
      'CertificateExpires',
      'TargetUnacknowledged',
      'KeysNotRenewed',
      'AgentKeyEnds',
      'BrokerWithoutTrustBundles',
      'BrokerCertificateExpires',
    ];
    expect(alerts).toEqual(expect.arrayContaining(needed.map((name) => `Proofgate${name}`)));
  });
});
