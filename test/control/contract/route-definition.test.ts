/** Members of a bundle's route that Control does not accept. */
import { expect, it } from '@jest/globals';
import { ROUTE_DEFINITION } from '../../../src/control/contract/routes-contract.ts';

it('a route cannot be observed by Control yet: it cannot tell which verifiers know the members', () => {
  expect(ROUTE_DEFINITION).toMatchObject({ additionalProperties: false });
  const members = Object.keys(ROUTE_DEFINITION.properties);
  expect(members).toContain('passport_header');
  expect(members.filter((name) => /^(?:route_id|enforcement|observe_until)$/.test(name))).toEqual([]);
});
