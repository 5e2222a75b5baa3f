-- What the XA sink asks for beside the tables: to look at and end other sessions. XA RECOVER needs no privilege here.
GRANT PROCESS, CONNECTION ADMIN ON *.* TO 'tidegate'@'%';
