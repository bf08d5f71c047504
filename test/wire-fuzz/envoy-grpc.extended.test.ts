/** Generated requests at envoy-grpc. */
import { ENVOY_GRPC } from '../support/points/envoy-grpc.ts';
import { wireFuzz } from './suite.ts';

for (const driver of ENVOY_GRPC.slice(-1)) wireFuzz(driver);
