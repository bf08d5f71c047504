/** Break-glass statements, valid or not, signed as usual. */
import { DOCUMENTS, type DocumentType, signDocument } from '../../../src/bundle/format/documents.ts';
import type { BreakGlassContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';

export interface StatedBundle {
  readonly authSite: string;
  readonly revision: number;
  readonly head: string;
  readonly fromSeconds: number;
  /** Default: an hour later. */
  readonly untilSeconds?: number;
}

export function breakGlassContent(stated: StatedBundle): BreakGlassContent {
  const { authSite, fromSeconds, head, revision, untilSeconds = fromSeconds + 3600 } = stated;
  return {
    auth_site: authSite,
    revision,
    head,
    from: formatTime(fromSeconds),
    until: formatTime(untilSeconds),
  };
}

/** @param content any value */
export function breakGlassDocument(
  content: unknown,
  keys: readonly SigningKey[],
  type: DocumentType = DOCUMENTS.breakGlass.type,
): Buffer {
  return signDocument(type, Buffer.from(JSON.stringify(content)), keys);
}
