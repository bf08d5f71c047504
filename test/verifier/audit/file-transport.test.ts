/** What is written where, and when a file is looked for, call by call. */
import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import type { Delivery } from '../../../src/verifier/audit/batching.ts';
import { FileTransport } from '../../../src/verifier/audit/file-transport.ts';
import type { LineBatch } from '../../../src/verifier/audit/line-queue.ts';
import { makeFifo, openReader, readAvailable } from './fifo.ts';
import { ScriptedDestination } from './scripted-destination.ts';
import { TrailFolder } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

let opened: number[] = [];
afterEach(() => {
  for (const descriptor of opened) closeSync(descriptor);
  opened = [];
});

function kept(descriptor: number): number {
  opened.push(descriptor);
  return descriptor;
}

function openFile() {
  const path = folder.newPath();
  return { descriptor: kept(openSync(path, 'a')), text: () => readFileSync(path, 'utf8') };
}

function openFifo() {
  const path = makeFifo(folder.newPath());
  const reader = kept(openReader(path));
  return { reader, writer: kept(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)) };
}

const batchOf = (text: string): LineBatch => ({ bytes: Buffer.from(text), events: 1, reportedLost: 0 });
/** More than a pipe holds. */
const LONG_LINE = `${'x'.repeat(200_000)}\n`;

function transportTo(destination: ScriptedDestination) {
  const failures: string[] = [];
  return { transport: new FileTransport(destination, (code) => failures.push(code)), failures };
}

/** Once it is something else. */
async function deliverUntil(kind: Delivery['kind'], transport: FileTransport, batch: LineBatch) {
  let busy = 0;
  for (;;) {
    const delivery = await transport.deliver(batch);
    if (delivery.kind === kind) return { busy, delivery };
    expect(delivery).toEqual({ kind: 'busy', waitMs: 5 });
    busy += 1;
  }
}

describe('a file', () => {
  it('takes each batch once, and is not looked for each time', async () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    const { transport } = transportTo(destination);
    for (const text of ['1\n', '2\n', '3\n4\n']) {
      expect(await transport.deliver(batchOf(text))).toEqual({ kind: 'delivered' });
    }
    expect([file.text(), destination.followed]).toEqual(['1\n2\n3\n4\n', []]);
  });

  it('that is torn has its last line ended first, once', async () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    destination.isTorn = true;
    const { transport } = transportTo(destination);
    await transport.deliver(batchOf('1\n'));
    await transport.deliver(batchOf('2\n'));
    expect([file.text(), destination.isTorn]).toEqual(['\n1\n2\n', false]);
  });

  it('is opened anew at once when that is asked for between batches, and not again', async () => {
    const [old, other] = [openFile(), openFile()];
    const destination = new ScriptedDestination(old.descriptor);
    const { transport, failures } = transportTo(destination);
    await transport.deliver(batchOf('1\n'));
    destination.next = other.descriptor;
    transport.reopen();
    expect(destination.followed).toEqual([true]);
    await transport.deliver(batchOf('2\n'));
    expect([old.text(), other.text()]).toEqual(['1\n', '2\n']);
    expect([destination.followed, failures]).toEqual([[true], []]);
  });

  it('that cannot be opened anew is reported, and the old one written to', async () => {
    const file = openFile();
    const destination = new ScriptedDestination(file.descriptor);
    const { transport, failures } = transportTo(destination);
    destination.failure = 'eacces';
    transport.reopen();
    expect(await transport.deliver(batchOf('1\n'))).toEqual({ kind: 'delivered' });
    expect([failures, file.text()]).toEqual([['eacces'], '1\n']);
  });

  it('that is not there is looked for with each batch, and fails it', async () => {
    const destination = new ScriptedDestination();
    const { transport, failures } = transportTo(destination);
    const batch = batchOf('1\n');
    destination.failure = 'enxio';
    for (let count = 0; count < 2; count += 1) {
      expect(await transport.deliver(batch)).toEqual({ kind: 'failed', code: 'enxio' });
    }
    expect([destination.followed, failures]).toEqual([[false, false], []]);
    const file = openFile();
    destination.next = file.descriptor;
    destination.failure = undefined;
    expect(await transport.deliver(batch)).toEqual({ kind: 'delivered' });
    expect(file.text()).toBe('1\n');
  });

  it('that takes nothing fails the batch whole, torn or not as before', async () => {
    const full = kept(openSync('/dev/full', 'w'));
    const destination = new ScriptedDestination(full);
    const { transport } = transportTo(destination);
    expect(await transport.deliver(batchOf('1\n'))).toEqual({ kind: 'failed', code: 'enospc' });
    expect(destination.isTorn).toBe(false);
    const file = openFile();
    destination.descriptor = file.descriptor;
    expect(await transport.deliver(batchOf('2\n'))).toEqual({ kind: 'delivered' });
    expect(file.text()).toBe('2\n');
  });
});

describe('a pipe that is full', () => {
  it('is waited for in the middle of a line, and nothing is written twice', async () => {
    const { reader, writer } = openFifo();
    const destination = new ScriptedDestination(writer);
    const { transport } = transportTo(destination);
    const batch = batchOf(`1\n${LONG_LINE}`);
    let text = '';
    let busy = 0;
    for (;;) {
      const delivery = await transport.deliver(batch);
      text += readAvailable(reader);
      if (delivery.kind === 'delivered') break;
      expect(delivery).toEqual({ kind: 'busy', waitMs: 5 });
      busy += 1;
    }
    expect(busy).toBeGreaterThan(1);
    expect(text === `1\n${LONG_LINE}`).toBe(true);
    expect(destination.isTorn).toBe(false);
  });

  it('is not left for another one in the middle of a line, but after it', async () => {
    const { reader, writer } = openFifo();
    const destination = new ScriptedDestination(writer);
    const { transport } = transportTo(destination);
    const batch = batchOf(LONG_LINE);
    expect(await transport.deliver(batch)).toEqual({ kind: 'busy', waitMs: 5 });
    const other = openFile();
    destination.next = other.descriptor;
    transport.reopen();
    expect(destination.followed).toEqual([]);
    let text = readAvailable(reader);
    while ((await transport.deliver(batch)).kind === 'busy') text += readAvailable(reader);
    text += readAvailable(reader);
    expect([destination.followed, text === LONG_LINE]).toEqual([[], true]);
    await transport.deliver(batchOf('2\n'));
    expect([destination.followed, other.text()]).toEqual([[true], '2\n']);
  });

  it('and stays so is a failure after a while, and goes on where it was once there is room', async () => {
    const { reader, writer } = openFifo();
    const destination = new ScriptedDestination(writer);
    const { transport } = transportTo(destination);
    const batch = batchOf(`1\n${LONG_LINE}`);
    const { busy, delivery } = await deliverUntil('failed', transport, batch);
    expect(delivery).toEqual({ kind: 'failed', code: 'eagain' });
    expect(busy).toBeGreaterThan(1);
    expect(await transport.deliver(batch)).toEqual(delivery);
    let text = readAvailable(reader);
    while ((await transport.deliver(batch)).kind !== 'delivered') text += readAvailable(reader);
    text += readAvailable(reader);
    expect([text === `1\n${LONG_LINE}`, destination.isTorn]).toEqual([true, false]);
  });

  it('and then breaks leaves a torn line: what is written next begins that line again', async () => {
    const { reader, writer } = openFifo();
    const destination = new ScriptedDestination(writer);
    const { transport } = transportTo(destination);
    const batch = batchOf(`1\n${LONG_LINE}`);
    expect((await transport.deliver(batch)).kind).toBe('busy');
    expect(readAvailable(reader).startsWith('1\nx')).toBe(true);
    closeSync(reader);
    opened = opened.filter((descriptor) => descriptor !== reader);
    expect(await transport.deliver(batch)).toEqual({ kind: 'failed', code: 'epipe' });
    expect(destination.isTorn).toBe(true);
    const file = openFile();
    destination.descriptor = file.descriptor;
    expect(await transport.deliver(batch)).toEqual({ kind: 'delivered' });
    expect(file.text() === `\n${LONG_LINE}`).toBe(true);
  });

  it('and breaks between two lines leaves none torn', async () => {
    const { reader, writer } = openFifo();
    const destination = new ScriptedDestination(writer);
    const { transport } = transportTo(destination);
    // A pipe takes 65,536 bytes: the first line ends there.
    const first = `${'x'.repeat(65_535)}\n`;
    const batch = batchOf(`${first}2\n`);
    expect((await transport.deliver(batch)).kind).toBe('busy');
    expect(readAvailable(reader) === first).toBe(true);
    closeSync(reader);
    opened = opened.filter((descriptor) => descriptor !== reader);
    expect(await transport.deliver(batch)).toEqual({ kind: 'failed', code: 'epipe' });
    expect(destination.isTorn).toBe(false);
    const file = openFile();
    destination.descriptor = file.descriptor;
    expect(await transport.deliver(batch)).toEqual({ kind: 'delivered' });
    expect(file.text()).toBe('2\n');
  });
});
