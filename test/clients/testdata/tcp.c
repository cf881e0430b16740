// SPDX-License-Identifier: Apache-2.0
// Connects to HOST PORT in an unusual way, TRICK, and has a conversation: a line to the server, and
// the server's answer. Prints both, and who the peer is.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define SO_ORIGINAL_DST 80

static struct sockaddr_storage to, second;
static socklen_t tolen, secondlen;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static socklen_t parse(const char *host, const char *port, struct sockaddr_storage *a)
{
	struct sockaddr_in *four = (void *)a;
	struct sockaddr_in6 *six = (void *)a;

	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(atoi(port));
		return sizeof *four;
	}
	check(inet_pton(AF_INET6, host, &six->sin6_addr) == 1, host);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(atoi(port));
	return sizeof *six;
}

static void lacks(const char *what)
{
	printf("the kernel lacks %s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static int sock(int proto)
{
	int fd = socket(to.ss_family, SOCK_STREAM, proto);

	if (fd < 0 && proto == IPPROTO_MPTCP)
		lacks("MPTCP");
	check(fd >= 0, "socket");
	return fd;
}

static void name(const char *what, int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	char host[64];

	check(getpeername(fd, (void *)&a, &len) == 0, "getpeername");
	if (a.ss_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, host, sizeof host);
	else
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&a)->sin6_addr, host, sizeof host);
	printf("%s %s port %d\n", what, host, ntohs(((struct sockaddr_in *)&a)->sin_port));
}

static void answer(int fd)
{
	char text[256];
	ssize_t n, got = 0;

	while (got < (ssize_t)sizeof text - 1) {
		n = read(fd, text + got, sizeof text - 1 - got);
		check(n > 0, "read");
		got += n;
		if (text[got - 1] == '\n')
			break;
	}
	text[got] = 0;
	printf("answer %s", text);
}

static void talk(int fd)
{
	check(write(fd, "hello\n", 6) == 6, "write");
	answer(fd);
}

static void dial(int fd)
{
	check(connect(fd, (void *)&to, tolen) == 0, "connect");
}

// The second connection has the cookie, so its data is in the SYN.
static void fastopen(int by_connect)
{
	struct tcp_info info;
	socklen_t len = sizeof info;
	int i, fd, on = 1;

	for (i = 0; i < 2; i++) {
		fd = sock(0);
		if (by_connect) {
			check(setsockopt(fd, SOL_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) == 0, "setsockopt");
			dial(fd);
			check(write(fd, "hello\n", 6) == 6, "write");
		} else {
			check(sendto(fd, "hello\n", 6, MSG_FASTOPEN, (void *)&to, tolen) == 6, "sendto");
		}
		answer(fd);
		name("peer", fd);
		check(getsockopt(fd, SOL_TCP, TCP_INFO, &info, &len) == 0, "TCP_INFO");
		if (info.tcpi_options & TCPI_OPT_SYN_DATA)
			printf("data in the SYN\n");
		close(fd);
	}
}

static void uring(void)
{
	struct io_uring_params p = {};
	struct io_uring_sqe *sqe;
	char *sq, *cq;
	unsigned *tail;
	int fd = sock(0), ring = syscall(SYS_io_uring_setup, 4, &p);

	if (ring < 0)
		lacks("io_uring (see the sysctl kernel.io_uring_disabled)");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof *sqe, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	check(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED, "mmap");
	memset(sqe, 0, sizeof *sqe);
	sqe->opcode = IORING_OP_CONNECT;
	sqe->fd = fd;
	sqe->addr = (unsigned long)&to;
	sqe->off = tolen;
	*(unsigned *)(sq + p.sq_off.array) = 0;
	tail = (unsigned *)(sq + p.sq_off.tail);
	__atomic_store_n(tail, 1, __ATOMIC_RELEASE);
	check(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
	      "io_uring_enter");
	errno = -((struct io_uring_cqe *)(cq + p.cq_off.cqes))->res;
	check(errno == 0, "io_uring connect");
	name("peer", fd);
	talk(fd);
}

// A connected socket goes to another process, which talks.
static void pass(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof control };
	int pair[2], fd = sock(0), status;

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	fflush(stdout);
	if (fork() == 0) {
		close(fd); // the parent's copy, not yet connected
		check(recvmsg(pair[1], &m, 0) == 1, "recvmsg");
		memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
		name("peer", fd);
		talk(fd);
		fflush(stdout);
		_exit(0);
	}
	dial(fd);
	control.head = (struct cmsghdr){ CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	check(sendmsg(pair[0], &m, 0) == 1, "sendmsg");
	close(fd);
	wait(&status);
	exit(WEXITSTATUS(status));
}

static void nonblocking(void)
{
	int fd, err = 0;
	socklen_t len = sizeof err;
	struct pollfd p;

	fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	check(connect(fd, (void *)&to, tolen) == -1 && errno == EINPROGRESS, "connect is in progress");
	p = (struct pollfd){ fd, POLLOUT, 0 };
	check(poll(&p, 1, 5000) == 1, "poll");
	check(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0, "SO_ERROR");
	errno = err;
	check(err == 0, "connect");
	check(fcntl(fd, F_SETFL, 0) == 0, "fcntl");
	name("peer", fd);
	talk(fd);
}

// The same socket connects to one frontend, then to another.
static void again(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd = sock(0);

	dial(fd);
	name("peer", fd);
	talk(fd);
	check(connect(fd, &none, sizeof none) == 0, "connect AF_UNSPEC");
	check(connect(fd, (void *)&second, secondlen) == 0, "connect again");
	name("peer", fd);
	talk(fd);
}

static int bound(void)
{
	/* Below the ephemeral ports: an earlier client of this namespace cannot have it. */
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(20040) };
	int fd = sock(0), on = 1;

	check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "SO_REUSEADDR");
	check(bind(fd, (void *)&from, sizeof from) == 0, "bind");
	return fd;
}

// Two frontends with one backend are one destination for the kernel.
static void collide(void)
{
	int one = bound(), two = bound();

	dial(one);
	talk(one);
	check(connect(two, (void *)&second, secondlen) == -1, "no collision");
	printf("second connect: %s\n", strerrorname_np(errno));
	close(two);
	talk(one);
}

static void original(void)
{
	struct sockaddr_in a;
	socklen_t len = sizeof a;
	int fd = sock(0);

	dial(fd);
	talk(fd);
	if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &a, &len) == 0)
		printf("original destination known\n");
	else
		printf("no original destination: %s\n", strerrorname_np(errno));
}

int main(int argc, char **argv)
{
	const char *trick = argv[1];
	int fd = -1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	tolen = parse(argv[2], argv[3], &to);
	if (argc > 5)
		secondlen = parse(argv[4], argv[5], &second);
	if (!strcmp(trick, "fastopen")) {
		fastopen(1);
	} else if (!strcmp(trick, "msg-fastopen")) {
		fastopen(0);
	} else if (!strcmp(trick, "io_uring")) {
		uring();
	} else if (!strcmp(trick, "pass")) {
		pass();
	} else if (!strcmp(trick, "nonblocking")) {
		nonblocking();
	} else if (!strcmp(trick, "again")) {
		again();
	} else if (!strcmp(trick, "collide")) {
		collide();
	} else if (!strcmp(trick, "original")) {
		original();
	} else if (!strcmp(trick, "mptcp")) {
		// Not named: before Linux 5.19, getpeername() shows the backend.
		fd = sock(IPPROTO_MPTCP);
		dial(fd);
		talk(fd);
	} else {
		if (!strcmp(trick, "bound"))
			fd = bound();
		else
			fd = sock(0);
		if (!strcmp(trick, "device"))
			check(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 4) == 0, "SO_BINDTODEVICE");
		dial(fd);
		name("peer", fd);
		talk(fd);
	}
	return 0;
}
