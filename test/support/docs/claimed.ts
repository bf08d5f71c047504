/** Joins the blocks of the documents with their rows in the table of claims. */

import { CLAIMS, type Claim } from '../../docs/blocks/claims.ts';
import { type Block, blocksOf, DOCUMENTS, placeOf } from './blocks.ts';

export interface ClaimedBlock {
  readonly block: Block;
  readonly claim: Claim;
}

export interface Claimed {
  readonly claimed: readonly ClaimedBlock[];
  /** Locations of blocks without a row. */
  readonly unclaimed: readonly string[];
  /** Rows without a block: `docs/operate/cli.md, Keys: 1`. */
  readonly idle: readonly string[];
}

export function matchClaims(documents: readonly string[] = DOCUMENTS, claims = CLAIMS): Claimed {
  const claimed: ClaimedBlock[] = [];
  const unclaimed: string[] = [];
  const left = new Map<string, Claim[]>();
  for (const [file, sections] of Object.entries(claims)) {
    for (const [section, rows] of Object.entries(sections)) left.set(`${file}, ${section}`, [...rows]);
  }
  for (const block of documents.flatMap(blocksOf)) {
    const claim = left.get(`${block.file}, ${block.section}`)?.shift();
    if (claim === undefined) unclaimed.push(`${placeOf(block)} (${block.section})`);
    else claimed.push({ block, claim });
  }
  const idle = [...left].filter(([, rows]) => rows.length > 0).map(([at, rows]) => `${at}: ${rows.length}`);
  return { claimed, unclaimed, idle };
}

export function claimedBlocks(): readonly ClaimedBlock[] {
  return matchClaims().claimed;
}
