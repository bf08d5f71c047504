/** The npm package `@proofgate/client`. */
export { denialOf, RequestDenied } from './denial.ts';
export type { FollowPolicy } from './follow-policy.ts';
export type { HeadersLike } from './header-lines.ts';
export type { SignedHeaders } from './prepared-request.ts';
export type { FetchLike } from './signed-fetch.ts';
export { type RequestToSign, Signer, type SignerOptions } from './signer.ts';
export { SignerError } from './signer-error.ts';
export type { Interceptor } from './signing-interceptor.ts';
