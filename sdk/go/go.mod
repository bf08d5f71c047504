module proofgate.example/proofgate

go 1.21
