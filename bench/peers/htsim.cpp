// FLOWS TCP flows (NewReno) of csg-htsim on one link of 10 Gbit/s, with a round trip of 20 ms and a buffer of one bandwidth-delay
// product, for SECONDS: what ../htsim.py compiles against a checkout. It prints the packets sent and the CPU time in nanoseconds.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <vector>

#include "clock.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

static double cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int count, char **words) {
    if (count != 3) {
        std::fprintf(stderr, "usage: htsim FLOWS SECONDS\n");
        return 2;
    }
    const int flows = std::stoi(words[1]);
    const double rate_mbit = 10000, rtt_ms = 20;
    // The library tells its settings to standard output.
    std::cout.setstate(std::ios_base::failbit);
    EventList events;
    events.setEndtime(timeFromSec(std::stod(words[2])));
    Packet::set_packet_size(1500);
    Queue queue(speedFromMbps((uint64_t)rate_mbit), (mem_b)(rate_mbit * 1e6 / 8 * rtt_ms / 1e3), events, nullptr);
    Pipe forth(timeFromMs(rtt_ms / 2), events), back(timeFromMs(rtt_ms / 2), events);
    // Its timeouts are looked at every 10 ms.
    TcpRtxTimerScanner timeouts(timeFromMs(10), events);
    // Never freed: the library's own objects point at them until the process ends.
    std::vector<TcpSrc *> senders;
    srand48(1);
    for (int flow = 0; flow < flows; flow++) {
        auto *sender = new TcpSrc(nullptr, nullptr, events);
        auto *receiver = new TcpSink();
        timeouts.registerTcp(*sender);
        auto *there = new route_t(), *home = new route_t();
        for (PacketSink *hop : {(PacketSink *)&queue, (PacketSink *)&forth, (PacketSink *)receiver}) there->push_back(hop);
        for (PacketSink *hop : {(PacketSink *)&back, (PacketSink *)sender}) home->push_back(hop);
        // They start at random within one round trip, so that they do not lie in memory in the order of their turns.
        sender->connect(*there, *home, *receiver, timeFromMs(rtt_ms * drand48()));
        // Its own limit of 100 packets would leave one flow below 2 % of the link.
        sender->set_ssthresh(0xffffffff);
        senders.push_back(sender);
    }
    const double began = cpu_ns();
    while (events.doNextEvent()) {
    }
    const double took = cpu_ns() - began;
    uint64_t sent = 0;
    for (const TcpSrc *sender : senders) sent += sender->_packets_sent / Packet::data_packet_size();
    std::printf("%llu %.0f\n", (unsigned long long)sent, took);
    return 0;
}
