/**
 * Writes docs/reference/openapi.json and docs/reference/broker-openapi.json: what the real `proofgate control` serves at /openapi.json over an empty
 * data directory, and what the broker's application describes. Needs `npm run build` first. A test fails when a file is out of
 * date.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { createBrokerApp } from '../dist/broker/api/broker-app.js';
import { startControl } from '../dist/control/program/control-process.js';
import { CONTROL_SETTINGS } from '../dist/control/program/control-settings.js';
import { settingValues } from '../dist/process/settings/setting-sources.js';
import { createLogger } from '../dist/process/telemetry/logger.js';

const FILE = 'docs/reference/openapi.json';
const BROKER_FILE = 'docs/reference/broker-openapi.json';

const dataDirectory = mkdtempSync(path.join(tmpdir(), 'proofgate-openapi-'));
const texts = new Map([
  ['data-dir', [dataDirectory]],
  ['listen', ['127.0.0.1:0']],
  ['admin-listen', ['127.0.0.1:0']],
  ['public-url', ['https://control.example']],
]);
const control = await startControl(settingValues(CONTROL_SETTINGS, texts), {
  logger: createLogger('silent'),
});
try {
  const answer = await fetch(`http://${control.address}/openapi.json`);
  if (!answer.ok) throw new Error(`/openapi.json answers ${answer.status}`);
  writeFileSync(FILE, `${JSON.stringify(await answer.json(), undefined, 2)}\n`);
} finally {
  await control.stop();
  rmSync(dataDirectory, { recursive: true });
}
const broker = await createBrokerApp({
  settings: { publicUrl: 'https://broker.example', limits: {} },
  ports: {},
  log: pino({ level: 'silent' }),
  createServer: (handler) => createServer(handler),
});
await broker.ready();
writeFileSync(BROKER_FILE, `${JSON.stringify(broker.swagger(), undefined, 2)}\n`);
await broker.close();
execFileSync('node_modules/.bin/biome', ['format', '--write', FILE, BROKER_FILE], { stdio: 'inherit' });
