/** When a destination opens its file again. Too late loses the events that are written to a deleted file. */
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { type Destination, openDestination, writeNow } from '../../../src/verifier/audit/destination.ts';
import { TrailFolder } from './trail.ts';

const folder = new TrailFolder();
afterAll(() => folder.remove());

let opened: Destination[] = [];
afterEach(() => {
  for (const destination of opened) destination.close();
  opened = [];
});

function open(path: string, isShared = false): Destination {
  const destination = openDestination(path, isShared);
  opened.push(destination);
  return destination;
}

/** Whether it opened the file again; the new descriptor is opened before the old one is closed. */
function reopens(destination: Destination, force = false): boolean {
  const before = destination.descriptor;
  expect(destination.follow(force)).toBeUndefined();
  return destination.descriptor !== before;
}

describe('a file', () => {
  it('that is where it was stays open, unless it is forced', () => {
    const file = open(folder.newPath());
    writeNow(file, Buffer.from('1\n'));
    expect([reopens(file), reopens(file), reopens(file, true), reopens(file)]).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  it('that was moved away, removed or replaced is opened again, once', () => {
    const path = folder.newPath();
    const file = open(path);
    const moves = [
      () => renameSync(path, `${path}.1`),
      () => rmSync(path),
      () => {
        appendFileSync(`${path}.new`, '');
        renameSync(`${path}.new`, path);
      },
    ];
    for (const move of moves) {
      move();
      expect([reopens(file), reopens(file)]).toEqual([true, false]);
    }
  });

  it('that cannot be created again keeps the moved one, but not a deleted one, whose events would be lost', () => {
    const path = folder.newPath();
    const file = open(path);
    const { descriptor } = file;
    renameSync(path, `${path}.1`);
    mkdirSync(path);
    expect([file.follow(false), file.descriptor]).toEqual(['eisdir', descriptor]);
    writeNow(file, Buffer.from('1\n'));
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('1\n');
    rmSync(`${path}.1`);
    expect([file.follow(false), file.descriptor]).toEqual(['eisdir', undefined]);
    expect(writeNow(file, Buffer.from('2\n'))).toEqual({ written: 0, failure: 'enxio' });
    rmSync(path, { recursive: true });
    expect(reopens(file)).toBe(true);
  });

  it('that ends within a line is torn: of its own process when it opens it, of others at any time', () => {
    for (const [isShared, isTornByOther] of [
      [false, false],
      [true, true],
    ] as const) {
      const path = folder.newPath();
      expect(open(path, isShared).isTorn).toBe(false);
      appendFileSync(path, '{"half');
      expect(open(path, isShared).isTorn).toBe(true);
      appendFileSync(path, '"}\n');
      const whole = open(path, isShared);
      expect(whole.isTorn).toBe(false);
      appendFileSync(path, '{');
      expect(whole.isTorn).toBe(isTornByOther);
    }
  });
});

it('a path that can never be written to is an error at once', () => {
  expect(() => openDestination(folder.path)).toThrow(expect.objectContaining({ code: 'EISDIR' }));
  expect(() => openDestination(`${folder.newPath()}/missing/audit.jsonl`)).toThrow(
    expect.objectContaining({ code: 'ENOENT' }),
  );
});
