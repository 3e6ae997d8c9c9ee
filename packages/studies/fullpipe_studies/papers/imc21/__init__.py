"""Revisiting TCP Congestion Control Throughput Models & Fairness Properties at Scale.

Question: does what is known of congestion control at the edge hold for thousands of flows at 10 Gbit/s?
Method: 1000 to 5000 flows of Reno, CUBIC or BBRv1 on 10 Gbit/s with RTTs of 20 to 200 ms ("core"), and 10 to
50 flows on 100 Mbit/s ("edge").
Prediction: Reno and CUBIC are fair to their own kind at the core, BBR is not, other than at the edge. CUBIC
has 70 to 80 % beside Reno, and BBR is highly unfair to both.

Named after the conference. Of the paper's text, three of its findings were at hand, as quoted by a public
replication (vinitaparasrampuria/IMC-Revisiting-TCP); the rates, RTTs, numbers of flows and buffers (375 MB
at the core, 3 MB at the edge) are those of its scripts. That replication ran for up to three hours. We run
ten minutes, which is our choice. The first finding, on the model of Mathis et al., needs the number of each
window's halvings, which records lack, and is not here.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Revisiting TCP Congestion Control Throughput Models & Fairness Properties at Scale",
    cite="Philip, Ware, Athapathu, Sherry and Sekar, ACM IMC 2021",
)
