/** Members that many bodies share. */
import Type from 'typebox';

export const closed = { additionalProperties: false } as const;

export const text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });

/** Stands in bundles and is compared byte by byte: visible ASCII. */
export const identifier = (description: string) =>
  Type.String({
    pattern: '^[!-~]{1,512}$',
    description: `${description} 1 to 512 visible ASCII characters.`,
  });

export const moment = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} RFC 3339, UTC.` });

export const version = Type.Integer({ minimum: 1, description: 'As in the ETag.' });
