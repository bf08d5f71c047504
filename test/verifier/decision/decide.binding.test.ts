/** What a proof binds a request to: body, headers, place. */
import { BINDING_CASES } from './binding-cases.ts';
import { describeCases } from './cases.ts';

BINDING_CASES.forEach(describeCases);
