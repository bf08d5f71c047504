/**
 * Reads the drawing in docs/design/architecture.md from the imports of src/: rooms, floors, arrows, circles of folders.
 * Usage: node scripts/house.mjs [SRC]; SRC is `src` of another checkout, to compare. `check-architecture.mjs` fails on what it finds.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SPECIFIER = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*['"](\.{1,2}\/[^'"\n]+)['"]/g;

/** @returns every import between two files of the folder, as [importer, imported], by their paths within it */
export function importsOf(src) {
  const files = readdirSync(src, { recursive: true })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => /\.tsx?$/.test(file));
  const known = new Set(files);
  const imports = files.flatMap((importer) => {
    const text = readFileSync(path.join(src, importer), 'utf8');
    const targets = [...text.matchAll(SPECIFIER)].map(([, target]) =>
      path.posix.join(path.posix.dirname(importer), target),
    );
    return [...new Set(targets)].filter((file) => known.has(file)).map((imported) => [importer, imported]);
  });
  return { files, imports };
}

/** The folder that a file is in, seen from `depth` folders below `src`; files beside these folders are in their parent. */
function folderAt(file, depth) {
  return file.split('/').slice(0, -1).slice(0, depth).join('/');
}

/** @returns arrows between the folders at each depth; at a depth, only between folders with the same parent */
export function arrowsAt(imports, depth) {
  const arrows = new Map();
  for (const [importer, imported] of imports) {
    const [from, to] = [folderAt(importer, depth), folderAt(imported, depth)];
    if (from === to || folderAt(`${from}/`, depth - 1) !== folderAt(`${to}/`, depth - 1)) continue;
    const key = `${from} → ${to}`;
    arrows.set(key, { from, to, count: (arrows.get(key)?.count ?? 0) + 1 });
  }
  return [...arrows.values()];
}

/** @returns sets of folders that reach each other (Tarjan's strongly connected components of more than one folder) */
export function circlesOf(arrows) {
  const next = new Map();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  const index = new Map();
  const low = new Map();
  const stack = [];
  const circles = [];
  const visit = (folder) => {
    index.set(folder, index.size);
    low.set(folder, index.get(folder));
    stack.push(folder);
    for (const to of next.get(folder) ?? []) {
      if (!index.has(to)) visit(to);
      if (stack.includes(to)) low.set(folder, Math.min(low.get(folder), low.get(to)));
    }
    if (low.get(folder) !== index.get(folder)) return;
    const circle = stack.splice(stack.indexOf(folder));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const folder of next.keys()) if (!index.has(folder)) visit(folder);
  return circles;
}

/** @returns the number of floors between each room and the ground; rooms of one circle share a floor */
function floorsOf(rooms, arrows) {
  const floors = new Map(rooms.map((room) => [room, 0]));
  const together = circlesOf(arrows);
  const isWithin = ({ from, to }) => together.some((circle) => circle.includes(from) && circle.includes(to));
  for (let changed = true; changed; ) {
    changed = false;
    for (const { from, to } of arrows.filter((arrow) => !isWithin(arrow))) {
      if (floors.get(from) > floors.get(to)) continue;
      floors.set(from, floors.get(to) + 1);
      changed = true;
    }
  }
  return floors;
}

export function houseOf(src) {
  const { files, imports } = importsOf(src);
  const depths = Math.max(...files.map((file) => file.split('/').length - 1));
  const circles = [];
  for (let depth = 1; depth <= depths; depth++) circles.push(...circlesOf(arrowsAt(imports, depth)));
  const rooms = [...new Set(files.map((file) => folderAt(file, 1)))].sort();
  const arrows = arrowsAt(imports, 1);
  return { files, imports, rooms, arrows, circles, floors: floorsOf(rooms, arrows) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [src = 'src'] = process.argv.slice(2);
  const { arrows, circles, files, floors, rooms } = houseOf(src);
  const linesOf = (room) =>
    files
      .filter((file) => folderAt(file, 1) === room)
      .reduce((sum, file) => sum + readFileSync(path.join(src, file), 'utf8').split('\n').length - 1, 0);
  for (const room of rooms.sort((one, other) => floors.get(one) - floors.get(other))) {
    const to = arrows.filter(({ from }) => from === room).map((arrow) => arrow.to);
    console.log(`${floors.get(room)}  ${room}  ${linesOf(room)} lines  → ${to.sort().join(' ') || '-'}`);
  }
  const floorCount = Math.max(...floors.values()) + 1;
  console.log(
    `${rooms.length} rooms on ${floorCount} floors, ${arrows.length} arrows, ${circles.length} circles of folders`,
  );
  for (const circle of circles) console.log(`circle: ${circle.join(' ')}`);
}
