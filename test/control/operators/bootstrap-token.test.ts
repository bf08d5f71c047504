/** Tests the first secrets of an installation: after a crash at any step, they exist and all instances agree on them. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  disableBootstrapToken,
  establishBootstrapToken,
} from '../../../src/control/operators/bootstrap-token.ts';
import { createSessions } from '../../../src/control/operators/sessions.ts';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import { establishMasterKeys } from '../../../src/control/secrets/installation-key.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { type SecretFile, secretFile } from '../../../src/process/files/secret-files.ts';
import { type DatabaseKind, databaseKinds, type Opener } from '../store/databases.ts';
import { dyingStore, Killed } from '../store/dying-store.ts';

describe.each(databaseKinds().map((kind) => [kind.name, kind] as const))(
  'on %s',
  (_name, kind: DatabaseKind) => {
    let open: Opener;
    let store: ControlStore;
    let folder = '';

    beforeAll(() => kind.start());
    afterAll(() => kind.stop());
    beforeEach(async () => {
      open = await kind.fresh();
      store = await open();
      folder = await mkdtemp(join(tmpdir(), 'proofgate-bootstrap-'));
    });
    afterEach(async () => {
      await store.close();
      await rm(folder, { recursive: true });
    });

    const file = (name = 'bootstrap-token'): SecretFile => secretFile(join(folder, name));
    const keptHash = () => store.read((tx) => tx.operators.bootstrapTokenHash());

    async function expectHeld(by: SecretFile): Promise<void> {
      const token = (await by.read())?.trim() ?? '';
      expect(token).toMatch(/^pgb_/);
      expect(await keptHash()).toBe(tokenHash(token));
    }

    test('a first start writes the token, later ones leave it', async () => {
      expect(await establishBootstrapToken(store, file(), false)).toBe('written');
      await expectHeld(file());
      expect((await stat(file().path)).mode & 0o777).toBe(0o600);
      const before = await readFile(file().path, 'utf8');
      expect(await establishBootstrapToken(store, file(), false)).toBe('kept');
      expect(await readFile(file().path, 'utf8')).toBe(before);
      expect(await readdir(folder)).toEqual(['bootstrap-token']);
    });

    test.each(['before', 'after'] as const)(
      'a start that dies right %s its commit leaves a token that somebody has',
      async (when) => {
        await expect(establishBootstrapToken(dyingStore(store, when), file(), false)).rejects.toThrow(Killed);
        const written = (await file().read())?.trim() ?? '';
        if (when === 'after') expect(await keptHash()).toBe(tokenHash(written));
        expect(await establishBootstrapToken(store, file(), false)).toBe(
          when === 'before' ? 'written' : 'kept',
        );
        await expectHeld(file());
        expect((await file().read())?.trim()).toBe(written);
      },
    );

    test('of starts at the same time one has its way, and the others leave nothing behind', async () => {
      const files = Array.from({ length: 6 }, (_, i) => file(`token-${i}`));
      const states = await Promise.all(files.map((one) => establishBootstrapToken(store, one, false)));
      expect(states.filter((state) => state === 'written')).toHaveLength(1);
      expect(states.filter((state) => state === 'elsewhere')).toHaveLength(5);
      const left = await readdir(folder);
      expect(left).toHaveLength(1);
      await expectHeld(file(left[0]));
    });

    test('starts at the same time over one file agree on it', async () => {
      const states = await Promise.all(
        Array.from({ length: 6 }, () => establishBootstrapToken(store, file(), false)),
      );
      expect(states.every((state) => state === 'written' || state === 'kept')).toBe(true);
      await expectHeld(file());
      expect(await readdir(folder)).toEqual(['bootstrap-token']);
    });

    test('reports a file with another token and does not touch it', async () => {
      await establishBootstrapToken(store, file(), false);
      await writeFile(file('other').path, `pgb_${'y'.repeat(43)}\n`, { mode: 0o600 });
      expect(await establishBootstrapToken(store, file('other'), false)).toBe('stale');
      expect(await file('other').read()).toContain('yyy');
      await expectHeld(file());
    });

    test('disabled it stays, until a start with --reset', async () => {
      await establishBootstrapToken(store, file(), false);
      await disableBootstrapToken(store, { actor: 'token:at_1', requestId: 'req_1' });
      expect(await establishBootstrapToken(store, file(), false)).toBe('disabled');
      expect(await establishBootstrapToken(store, file('fresh'), false)).toBe('disabled');
      expect(await file('fresh').read()).toBeUndefined();
      expect(await establishBootstrapToken(store, file('fresh'), true)).toBe('written');
      await expectHeld(file('fresh'));
      expect(await establishBootstrapToken(store, file('fresh'), true)).toBe('kept');
    });

    test('its sessions end with it, in the same transaction, and no other session', async () => {
      await establishBootstrapToken(store, file(), false);
      const sessions = createSessions({ store, lifetimeMs: 60_000, nowMs: () => 0 });
      const ada = { issuer: 'https://i.example', subject: 'ada', displayName: 'Ada', groups: [] };
      const other = await sessions.start(ada, 'browser', 'req_1');
      const ofToken = async () =>
        sessions.startBootstrap((await readFile(file().path, 'utf8')).trim(), 'req_1');
      const isThere = ({ token }: { readonly token: string }) =>
        store.read(async (tx) => (await tx.operators.session(tokenHash(token))) !== undefined);
      const first = await ofToken();
      expect(await isThere(first)).toBe(true);
      await file().remove();
      await expect(establishBootstrapToken(dyingStore(store, 'before'), file(), true)).rejects.toThrow(
        Killed,
      );
      expect(await isThere(first)).toBe(true);
      await establishBootstrapToken(store, file(), true);
      expect(await isThere(first)).toBe(false);
      const second = await ofToken();
      await disableBootstrapToken(store, { actor: 'token:at_1', requestId: 'req_1' });
      expect([await isThere(second), await isThere(other)]).toEqual([false, true]);
      await expect(ofToken()).rejects.toMatchObject({ code: 'authentication_required' });
    });

    test('a reset that dies before its commit is finished by the next one', async () => {
      await establishBootstrapToken(store, file(), false);
      await file().remove();
      await expect(establishBootstrapToken(dyingStore(store, 'before'), file(), true)).rejects.toThrow(
        Killed,
      );
      expect(await establishBootstrapToken(store, file(), true)).toBe('written');
      await expectHeld(file());
    });

    test('one master key seals the database; of first starts at the same time, the others fail', async () => {
      const files = Array.from({ length: 4 }, (_, i) => file(`key-${i}`));
      const results = await Promise.allSettled(files.map((one) => establishMasterKeys(store, one)));
      const made = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value.all[0].id] : []));
      expect(made).toHaveLength(1);
      expect(await store.read((tx) => tx.operators.masterKey())).toMatchObject({ id: made[0] });
      const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      // An early instance generated its own key in vain; a later one found the sealed data but had no key.
      for (const { code } of refused) expect(['master_key_mismatch', 'master_key_missing']).toContain(code);
      // Their keys sealed nothing, so a copy of the right key can replace them.
      expect(await readdir(folder)).toHaveLength(1);
    });

    test('a first start that dies after its master key was written goes on with it', async () => {
      await expect(establishMasterKeys(dyingStore(store, 'before'), file('key'))).rejects.toThrow(Killed);
      const written = await file('key').read();
      const keys = await establishMasterKeys(store, file('key'));
      expect(await file('key').read()).toBe(written);
      expect(keys.all[0].id).toBe((await establishMasterKeys(store, file('key'))).all[0].id);
      expect(`${keys}${JSON.stringify({ keys })}`).toBe('[redacted]{"keys":"[redacted]"}');
    });
  },
);
