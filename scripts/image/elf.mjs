/** Reads the load-time dependencies of a program or shared library. Source: the ELF-64 object file format, elf(5). */
import { readFileSync } from 'node:fs';

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const DYNAMIC_ENTRY_BYTES = 16;

/**
 * @returns its machine's number, the file that loads it (programs have one) and the names of libraries that it needs; undefined when
 *   it is not a 64-bit little-endian ELF file
 */
export function readElf(path) {
  const bytes = readFileSync(path);
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1)
    return undefined;
  const segments = segmentsOf(bytes);
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  return {
    machine: bytes.readUInt16LE(18),
    interpreter: interpreter && textAt(bytes, interpreter.offset),
    needed: neededBy(bytes, segments),
  };
}

function segmentsOf(bytes) {
  const start = number(bytes, 32);
  const size = bytes.readUInt16LE(54);
  return Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => {
    const at = start + index * size;
    return {
      type: bytes.readUInt32LE(at),
      offset: number(bytes, at + 8),
      address: number(bytes, at + 16),
      bytes: number(bytes, at + 32),
    };
  });
}

function neededBy(bytes, segments) {
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (dynamic === undefined) return [];
  const entries = Array.from({ length: dynamic.bytes / DYNAMIC_ENTRY_BYTES }, (_, index) => {
    const at = dynamic.offset + index * DYNAMIC_ENTRY_BYTES;
    return { tag: number(bytes, at), value: number(bytes, at + 8) };
  });
  const names = entries.find(({ tag }) => tag === DT_STRTAB);
  if (names === undefined) return [];
  const namesOffset = offsetOf(segments, names.value);
  return entries
    .filter(({ tag }) => tag === DT_NEEDED)
    .map(({ value }) => textAt(bytes, namesOffset + value));
}

/** Maps an address of the loaded file to an offset in the file. */
function offsetOf(segments, address) {
  const segment = segments.find(
    (each) => each.type === PT_LOAD && address >= each.address && address < each.address + each.bytes,
  );
  if (segment === undefined) throw new Error('an address outside of what is loaded');
  return segment.offset + address - segment.address;
}

function number(bytes, at) {
  return Number(bytes.readBigUInt64LE(at));
}

function textAt(bytes, at) {
  return bytes.toString('latin1', at, bytes.indexOf(0, at));
}
