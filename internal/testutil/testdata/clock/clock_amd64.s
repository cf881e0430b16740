#include "textflag.h"

// func install()
TEXT ·install(SB), NOSPLIT, $0-0
	MOVQ runtime·vdsoClockgettimeSym(SB), AX
	MOVQ AX, ·original(SB)
	LEAQ ·shifted(SB), AX
	MOVQ AX, runtime·vdsoClockgettimeSym(SB)
	RET

// shifted is clock_gettime by C's calling convention: DI is the clock, and SI where the time goes.
TEXT ·shifted(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	PUSHQ SI
	SUBQ  $8, SP // aligned to 16
	MOVQ  ·original(SB), AX
	CALL  AX
	ADDQ  $8, SP
	POPQ  SI
	POPQ  DI
	CMPL  DI, $1 // CLOCK_REALTIME is 0, CLOCK_MONOTONIC is 1
	JHI   done
	MOVL  DI, DI
	MOVQ  ·ahead(SB), CX
	MOVQ  (CX)(DI*8), CX
	ADDQ  CX, (SI)

done:
	RET
