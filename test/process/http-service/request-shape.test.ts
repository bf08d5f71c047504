import { expect, it, jest } from '@jest/globals';
import Type from 'typebox';
import { compileValidator, RequestShapeError } from '../../../src/process/http-service/request-shape.ts';

it('compares few of many unknown members', () => {
  const item = Type.Object({ name: Type.Optional(Type.String()) }, { additionalProperties: false });
  const validate = compileValidator({ schema: Type.Array(item), httpPart: 'body' });
  const unknown = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`nam${i}`, 1]));
  // Each comparison converts both names to lower case.
  const lowered = jest.spyOn(String.prototype, 'toLowerCase');
  const result = validate([unknown, unknown]);
  const calls = lowered.mock.calls.length;
  lowered.mockRestore();
  const error = 'error' in result ? result.error : undefined;
  expect(error).toBeInstanceOf(RequestShapeError);
  const { faults } = error as RequestShapeError;
  expect(faults[0]).toEqual({ pointer: '/body/0/nam0', reason: 'unknown member; did you mean name?' });
  expect(faults.length).toBeLessThanOrEqual(20);
  expect(calls).toBe(2 * faults.length);
});
