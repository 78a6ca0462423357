# Makes of scheduled.mlir a program that sends both waves with one start.
/in0 = comm.start/d
/comm.wait .in1/d
s/comm.wait .in0/comm.wait %in1/
s/order 1 sends(.s1 : memref<?xbf16, #s1>) receives(.r1 : memref<?xbf16, #r1>)/order 0 sends(%s0, %s1 : memref<?xbf16, #s0>, memref<?xbf16, #s1>) receives(%r0, %r1 : memref<?xbf16, #r0>, memref<?xbf16, #r1>)/
s/order 2/order 1/
s/order 3/order 2/
s/\(s[01] = comm.buffer offset\) [0-9]* bytes 64/\1 768 bytes 128/
s/\(r[01] = comm.buffer offset\) [0-9]* bytes 128/\1 896 bytes 128/
s/arena_bytes = 768/arena_bytes = 1024/
s/workspace_limit = 1024/workspace_limit = 1056/
