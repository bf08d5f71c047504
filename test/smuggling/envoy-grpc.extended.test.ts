/** The suite of envoy-grpc.test.ts on the other versions of Envoy. */
import './envoy-grpc.test.ts';
