/**
 * The cases of the smuggling corpus, as data. Each case signs one or more requests and writes bytes in which another request,
 * body, target, host or header may hide. Texts are Latin-1, one byte a character, with markers (`template.ts`).
 * Sources: RFC 9112 section 11, RFC 9113 sections 8 and 10; the published attacks are named at their families.
 */
import type { SignedHeader } from '../../../src/protocol/transcript.ts';
import type { ROUTES } from '../site/routes.ts';

/** A request that the caller signs before the bytes are written. */
export interface SignedPlan {
  readonly route: keyof typeof ROUTES;
  /** Default: the route's template with its placeholder filled in. */
  readonly target?: string;
  /** May contain markers, also the proof of a later plan. */
  readonly body?: string;
  readonly headers?: readonly SignedHeader[];
}

interface SmugglingCase {
  /** Unique in the corpus. */
  readonly name: string;
  readonly family: string;
  /** What the attacker would have achieved. */
  readonly success: string;
  readonly signs: readonly SignedPlan[];
}

export interface Http1Case extends SmugglingCase {
  /** What the attacker writes, one TCP write each. */
  readonly writes: readonly string[];
}

export interface Http2Case extends SmugglingCase {
  /** What the attacker writes after the preface and an empty SETTINGS frame. */
  readonly frames: readonly FrameText[];
  /** Without the preface and SETTINGS: the frames are all that is written. Default false. */
  readonly bare?: boolean;
}

export type LineText = readonly [name: string, value: string];

/** One HTTP/2 frame (RFC 9113 section 6). Flags are off and stream is 1 unless given. */
export type FrameText =
  | {
      readonly kind: 'headers';
      readonly lines: readonly LineText[];
      readonly stream?: number;
      readonly endStream?: boolean;
      /** Default true. */
      readonly endHeaders?: boolean;
      /** Splits the block into HEADERS and CONTINUATION frames of this many bytes. */
      readonly splitBytes?: number;
      readonly padding?: number;
      /** Stream that this one depends on (RFC 7540 section 5.3). */
      readonly dependsOn?: number;
      /** Bytes of HPACK before and after the lines, in hexadecimal. */
      readonly hpackBefore?: string;
      readonly hpackAfter?: string;
      readonly coding?: 'literal' | 'never_indexed' | 'indexed';
    }
  | {
      readonly kind: 'data';
      readonly text: string;
      readonly stream?: number;
      readonly endStream?: boolean;
      readonly padding?: number;
    }
  | {
      /** Any frame; its payload is text with markers, or hexadecimal. */
      readonly kind: 'raw';
      readonly type: number;
      readonly flags?: number;
      readonly stream?: number;
      readonly hex?: string;
      readonly text?: string;
      /** Announced instead of the payload's length. */
      readonly lengthBytes?: number;
      /** Default 1. */
      readonly times?: number;
    }
  | { readonly kind: 'bytes'; readonly text: string };

/** A request without a proof: wherever an upstream finds it, an attack has succeeded. */
export const HIDDEN =
  'GET /v1/payroll?case={id} HTTP/1.1\r\nHost: api.shop.example\r\nX-Proofgate-Subject: root\r\n\r\n';

/** The same, open at its end, so that it swallows what follows on the connection. */
export const HIDDEN_OPEN =
  'GET /v1/payroll?case={id} HTTP/1.1\r\nHost: api.shop.example\r\nX-Proofgate-Subject: root\r\nX-Rest: ';

/** For families of named variants: one case each. */
export function named<T>(variants: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(variants);
}
